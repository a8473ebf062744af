"""Tracing: from a numpy function to its graph."""

# Importing a chapter of numpy's functions lists them.
from tinyfuse.trace import accumulating as _accumulating
from tinyfuse.trace import arranging as _arranging
from tinyfuse.trace import averages as _averages
from tinyfuse.trace import bits as _bits
from tinyfuse.trace import choices as _choices
from tinyfuse.trace import conversions as _conversions
from tinyfuse.trace import correlations as _correlations
from tinyfuse.trace import counting as _counting
from tinyfuse.trace import creation as _creation
from tinyfuse.trace import cumulative as _cumulative
from tinyfuse.trace import decompositions as _decompositions
from tinyfuse.trace import diagonals as _diagonals
from tinyfuse.trace import einsum as _einsum
from tinyfuse.trace import elementwise as _elementwise
from tinyfuse.trace import folding as _folding
from tinyfuse.trace import fourier as _fourier
from tinyfuse.trace import histograms as _histograms
from tinyfuse.trace import indexing as _indexing
from tinyfuse.trace import joining as _joining
from tinyfuse.trace import linear_algebra as _linear_algebra
from tinyfuse.trace import lines as _lines
from tinyfuse.trace import mask_reductions as _mask_reductions
from tinyfuse.trace import matrix_functions as _matrix_functions
from tinyfuse.trace import multi_dot as _multi_dot
from tinyfuse.trace import nan_order_statistics as _nan_order_statistics
from tinyfuse.trace import nan_reductions as _nan_reductions
from tinyfuse.trace import new_arrays as _new_arrays
from tinyfuse.trace import norms as _norms
from tinyfuse.trace import operators as _operators
from tinyfuse.trace import order_statistics as _order_statistics
from tinyfuse.trace import padding as _padding
from tinyfuse.trace import picking as _picking
from tinyfuse.trace import polynomials as _polynomials
from tinyfuse.trace import ranges as _ranges
from tinyfuse.trace import reductions as _reductions
from tinyfuse.trace import run_time_reductions as _run_time_reductions
from tinyfuse.trace import searching as _searching
from tinyfuse.trace import selection as _selection
from tinyfuse.trace import shape as _shape
from tinyfuse.trace import signals as _signals
from tinyfuse.trace import singular_values as _singular_values
from tinyfuse.trace import sorting as _sorting
from tinyfuse.trace import special_values as _special_values
from tinyfuse.trace import weak_integers as _weak_integers
from tinyfuse.trace.captured import Captured, Place
from tinyfuse.trace.lists import take_lists as _take_lists
from tinyfuse.trace.operations import is_traced
from tinyfuse.trace.run import trace
from tinyfuse.trace.scope import as_traced
from tinyfuse.trace.specs import ArgumentSpec, Check, NeedsValue, OutputSpec, Trace
from tinyfuse.trace.tracer import Tracer

__all__ = [
    "ArgumentSpec",
    "Captured",
    "Check",
    "NeedsValue",
    "OutputSpec",
    "Place",
    "Trace",
    "Tracer",
    "as_traced",
    "is_traced",
    "trace",
]

_CHAPTERS = (
    _accumulating,
    _arranging,
    _averages,
    _bits,
    _choices,
    _conversions,
    _correlations,
    _counting,
    _creation,
    _cumulative,
    _decompositions,
    _diagonals,
    _einsum,
    _elementwise,
    _folding,
    _fourier,
    _histograms,
    _indexing,
    _joining,
    _linear_algebra,
    _lines,
    _mask_reductions,
    _matrix_functions,
    _multi_dot,
    _nan_order_statistics,
    _nan_reductions,
    _new_arrays,
    _norms,
    _operators,
    _order_statistics,
    _padding,
    _picking,
    _polynomials,
    _ranges,
    _reductions,
    _run_time_reductions,
    _searching,
    _selection,
    _shape,
    _signals,
    _singular_values,
    _sorting,
    _special_values,
    _weak_integers,
)
_take_lists()
