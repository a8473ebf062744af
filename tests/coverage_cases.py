"""Calls of numpy's functions and methods, with every keyword that numpy documents.

x, y: (3, 4) and of one dtype; v: (4,), of it too; n: int64[3], positions; b: bool[3, 4]; m: bool[3];
s: without axes. Each line is evaluated for several such arrays; see `WORLDS` of test_coverage.
"""

CREATION = """
np.arange(4), np.arange(1, 7, 2, dtype=np.float32), np.arange(3, like=x), np.arange(3, device="cpu")
np.arange(1, stop=9, step=3)
np.array(x), np.array(object=x, dtype=np.float32, copy=True, order="F", subok=True, ndmin=3, like=x)
np.array(x, ndmax=0)
np.asarray(x), np.asarray(x, dtype=np.float32, order="C", device="cpu", copy=True, like=x)
np.asanyarray(x), np.asanyarray(x, np.float32, order="F", device="cpu", copy=None, like=x)
np.asarray_chkfinite(n, dtype=float, order="C"), np.asarray_chkfinite(x)
np.ascontiguousarray(x), np.ascontiguousarray(x, dtype=np.float32, like=x)
np.asfortranarray(x), np.asfortranarray(x, dtype=np.float32, like=x)
np.astype(x, np.float32), np.astype(x, np.float64, copy=False, device="cpu")
np.bartlett(5), np.blackman(5), np.hamming(5), np.hanning(5), np.kaiser(5, beta=2.0)
np.copy(x), np.copy(x, order="F", subok=True)
np.diag_indices(3), np.diag_indices(2, ndim=3), np.diag_indices_from(x[:, :3])
np.empty(3).shape, np.empty((2, 3), dtype=np.int8, order="F", device="cpu", like=x).dtype
np.empty_like(x).shape, np.empty_like(x, dtype=bool, order="C", subok=True, shape=(2,)).dtype
np.empty_like(x, device="cpu").dtype
np.eye(3), np.eye(2, M=4, k=1, dtype=np.float32, order="F", device="cpu", like=x)
np.frombuffer(b"\\x01\\x02\\x03", dtype=np.int8, count=2, offset=1, like=None)
np.fromfunction(lambda i, j: i + j, (2, 3)), np.fromfunction(lambda i, k=0: i * k, (2,), dtype=int, k=3)
np.fromiter([1, 2, 3], dtype=float, count=2), np.fromiter(iter=[1.0], dtype=float, like=None)
np.full((2, 3), 7), np.full(2, v[:2], dtype=np.float32, order="F", device="cpu", like=None)
np.full_like(x, 3), np.full_like(x, 2, dtype=np.int8, order="C", subok=True, shape=(2,), device="cpu")
np.geomspace(1, 8, num=4, endpoint=False, dtype=np.float32, axis=0)
np.identity(3), np.identity(2, dtype=np.float32, like=None)
np.indices((2, 3)), np.indices(dimensions=(2,), dtype=float, sparse=True)
np.linspace(0, 1, 5), np.linspace(x[0], x[1], num=3, endpoint=False, axis=1, device="cpu")
np.linspace(s, 2, num=3, retstep=True), np.linspace(0, 9, num=4, dtype=int)
np.logspace(0, 2, num=3, endpoint=False, base=2.0, dtype=np.float32, axis=0)
np.mask_indices(3, np.triu), np.mask_indices(3, mask_func=np.tril, k=1)
np.meshgrid(v, n), np.meshgrid(v, n, copy=False, sparse=True, indexing="ij")
np.ones(3), np.ones((2, 2), dtype=bool, order="F", device="cpu", like=x)
np.ones_like(x), np.ones_like(x, dtype=bool, order="C", subok=False, shape=3, device="cpu")
np.tri(3), np.tri(2, M=3, k=1, dtype=bool, like=x)
np.tril_indices(3), np.tril_indices(3, k=1, m=4), np.tril_indices_from(x), np.tril_indices_from(x, k=1)
np.triu_indices(3), np.triu_indices(3, k=-1, m=2), np.triu_indices_from(x), np.triu_indices_from(x, k=1)
np.vander(v), np.vander(v[:3], N=2, increasing=True)
np.zeros(3), np.zeros((2, 3), dtype=np.int16, order="F", device="cpu", like=x)
np.zeros_like(x), np.zeros_like(x, dtype=bool, order="F", subok=True, shape=(1, 2), device="cpu")
np.fft.fftfreq(5), np.fft.fftfreq(4, d=0.5, device="cpu"), np.fft.rfftfreq(5, d=2.0, device="cpu")
np.r_[v, 1.0, n], np.c_[v, v], np.s_[1:3], np.mgrid[:2, :3], np.ogrid[:2, :3]
"""

SHAPES = """
np.append(x, y), np.append(x, y, axis=0), np.append(arr=n, values=5)
np.array_split(x, 3), np.array_split(ary=x, indices_or_sections=[1, 2], axis=1)
np.atleast_1d(s, v), np.atleast_2d(s, v), np.atleast_3d(s, v, x)
np.block([[x, y], [y, x]]), np.block(arrays=[v, v])
np.broadcast_arrays(v, x), np.broadcast_arrays(v, x, subok=True)
np.broadcast_to(v, (2, 3, 4)), np.broadcast_to(array=v, shape=(1, 4), subok=True)
np.column_stack((x, y)), np.column_stack(tup=[n, n])
np.concatenate((x, y)), np.concatenate([x, n], axis=None, dtype=np.float32, casting="unsafe")
np.concatenate((x, y), axis=1, out=np.zeros((3, 8), x.dtype))
np.concat([x, y], 1), np.permute_dims(x, (1, 0))
np.dsplit(x[:, :, None], 1), np.hsplit(x, 2), np.hsplit(ary=v, indices_or_sections=[1]), np.vsplit(x, 3)
np.dstack((v, v)), np.hstack([x, n[:, None]], dtype=np.float32, casting="unsafe"), np.hstack(tup=(v, v))
np.vstack([v, n[:1].repeat(4)], dtype=np.float32, casting="unsafe"), np.vstack(tup=(x, v))
np.expand_dims(x, 1), np.expand_dims(a=v, axis=(0, 2))
np.flip(x), np.flip(m=x, axis=1), np.fliplr(x), np.flipud(x)
np.moveaxis(x, 0, 1), np.moveaxis(a=x, source=[0], destination=[-1])
np.matrix_transpose(x), np.swapaxes(x, 0, 1), np.swapaxes(a=x, axis1=-1, axis2=0)
np.ndim(x), np.shape(x), np.size(x), np.size(a=x, axis=1)
np.pad(v, 1), np.pad(x, ((1, 0), (2, 1)), mode="constant", constant_values=3)
np.pad(v, (2, 1), "linear_ramp", end_values=(1, 2)), np.pad(array=x, pad_width=1, mode="edge")
np.pad(v, 2, "maximum", stat_length=2), np.pad(v, 2, "reflect", reflect_type="odd"), np.pad(v, 3, "wrap")
np.ravel(x), np.ravel(a=x, order="F"), np.reshape(x, (4, 3)), np.reshape(x, shape=-1, order="F", copy=True)
np.repeat(x, 2), np.repeat(a=x, repeats=[1, 0, 2], axis=0), np.resize(x, (2, 5)), np.resize(v, new_shape=3)
np.roll(x, 1), np.roll(x, shift=(1, -2), axis=(0, 1)), np.rollaxis(x, 1), np.rollaxis(x, axis=1, start=0)
np.rot90(x), np.rot90(m=x, k=2, axes=(1, 0))
np.split(x, 2, axis=1), np.split(ary=v, indices_or_sections=[1, 3]), np.unstack(x), np.unstack(x, axis=1)
np.squeeze(x[:1]), np.squeeze(a=x[:, :1], axis=1)
np.stack((x, y)), np.stack(arrays=[x, n[:, None] + x], axis=-1, dtype=np.float32, casting="unsafe")
np.stack((v, v), out=np.zeros((2, 4), v.dtype))
np.tile(x, 2), np.tile(A=v, reps=(2, 1)), np.transpose(x), np.transpose(a=x, axes=(1, 0))
np.fft.fftshift(x), np.fft.fftshift(x=x, axes=1), np.fft.ifftshift(x), np.fft.ifftshift(x=x, axes=(0,))
np.lib.stride_tricks.sliding_window_view(x, (2, 2)), np.lib.stride_tricks.sliding_window_view(v, 2, axis=0)
np.lib.stride_tricks.sliding_window_view(x=v, window_shape=2, subok=True, writeable=False)
"""

PLACES = """
np.choose(n % 2, [n, n + 1]), np.choose(a=n - 5, choices=[n, n], mode="clip", out=np.zeros(3, int))
np.compress([True, False, True], x, axis=0), np.compress(condition=[1, 0], a=v)
np.compress([True, False], v, out=np.zeros(1, v.dtype))
np.copyto(x, y), np.copyto(dst=x, src=v, where=b), np.copyto(n, v[:3], casting="unsafe"), n, x
np.delete(x, 1), np.delete(arr=x, obj=[0, 2], axis=0), np.delete(v, slice(1, 3))
np.diag(v), np.diag(x, k=1), np.diag(v=x[:, :3], k=-1), np.diagflat(v), np.diagflat(v=x, k=1)
np.diagonal(x), np.diagonal(x, offset=1), np.diagonal(a=x, axis1=1, axis2=0)
np.extract(b, x).sum(), np.extract(condition=b, arr=y).max(initial=0)
np.fill_diagonal(x, 7), np.fill_diagonal(a=x[:, :2], val=5, wrap=False), x
np.insert(x, 1, 9), np.insert(arr=x, obj=[0, 2], values=v, axis=0)
np.ix_(n, [0, 2]), x[np.ix_(n, [0, 2])]
np.place(x, b, [1, 2, 3]), np.place(arr=y, mask=b, vals=[4]), x, y
np.put(x, [0, 5], [1, 2]), np.put(a=y, ind=[15], v=7, mode="clip"), x, y
np.put_along_axis(x, n[:, None], 1, axis=1), np.put_along_axis(arr=y, indices=n[None], values=0, axis=0), y
np.putmask(x, b, y), np.putmask(y, mask=b, values=[1, 2]), x, y
np.ravel_multi_index((n, n), (3, 4)), np.ravel_multi_index(multi_index=(n, n + 3), dims=(3, 4), mode="clip")
np.ravel_multi_index((n, n), dims=(3, 4), order="F")
np.unravel_index(n, (2, 3)), np.unravel_index(indices=n, shape=(2, 3), order="F")
np.select([b, x > 0], [x, y]), np.select(condlist=[b], choicelist=[x], default=7)
np.take(x, n), np.take(a=x, indices=n, axis=0, mode="wrap"), np.take(v, n, out=np.zeros(3, v.dtype))
np.take_along_axis(x, n[:, None], 1), np.take_along_axis(arr=x, indices=n[None], axis=0)
np.tril(x), np.tril(m=x, k=1), np.triu(x), np.triu(m=x, k=-1)
np.where(b, x, y), np.where(b, x, 0)
np.trim_zeros(np.array([0, 1, 0]))
"""

REDUCTIONS = """
np.all(x), np.all(a=x, axis=0, keepdims=True, where=b), np.all(b, out=np.zeros((), bool))
np.any(x), np.any(a=x, axis=0, keepdims=True, where=b), np.any(b, axis=1, out=np.zeros(3, bool))
np.amax(x, axis=0), np.amax(a=x, keepdims=True, initial=1, where=b), np.amax(x, out=np.zeros((), x.dtype))
np.amin(x, axis=0), np.amin(a=x, keepdims=True, initial=1, where=b), np.amin(x, out=np.zeros((), x.dtype))
np.max(x, axis=0), np.max(a=x, keepdims=True, initial=1, where=b), np.max(x, 1, np.zeros(3, x.dtype))
np.min(x, axis=0), np.min(a=x, keepdims=True, initial=1, where=b), np.min(x, 1, np.zeros(3, x.dtype))
np.argmax(x), np.argmax(a=x, axis=1, keepdims=True), np.argmax(x, axis=0, out=np.zeros(4, int))
np.argmin(x), np.argmin(a=x, axis=1, keepdims=True), np.argmin(x, axis=0, out=np.zeros(4, int))
np.average(x), np.average(a=x, axis=1, weights=v, returned=True, keepdims=True)
np.count_nonzero(x), np.count_nonzero(a=b, axis=1, keepdims=True)
np.cumprod(x), np.cumprod(a=x, axis=1, dtype=np.float64), np.cumprod(v, out=np.zeros(4, v.dtype))
np.cumsum(x), np.cumsum(a=x, axis=1, dtype=np.float64), np.cumsum(v, out=np.zeros(4, v.dtype))
np.cumulative_prod(v), np.cumulative_prod(x, axis=1, dtype=np.float64, include_initial=True)
np.cumulative_prod(v, out=np.zeros(4, v.dtype)), np.cumulative_sum(v, out=np.zeros(4, v.dtype))
np.cumulative_sum(v), np.cumulative_sum(x, axis=1, dtype=np.float64, include_initial=True)
np.mean(x), np.mean(a=x, axis=1, dtype=np.float64, keepdims=True, where=b), np.mean(x, out=np.zeros(()))
np.median(x), np.median(a=x, axis=1, keepdims=True, overwrite_input=False), np.median(x, out=np.zeros(()))
np.nanargmax(x), np.nanargmax(a=x, axis=1, keepdims=True), np.nanargmax(x, axis=0, out=np.zeros(4, int))
np.nanargmin(x), np.nanargmin(a=x, axis=1, keepdims=True), np.nanargmin(x, axis=0, out=np.zeros(4, int))
np.nancumprod(x), np.nancumprod(a=x, axis=1, dtype=np.float64), np.nancumprod(v, out=np.zeros(4, v.dtype))
np.nancumsum(x), np.nancumsum(a=x, axis=1, dtype=np.float64), np.nancumsum(v, out=np.zeros(4, v.dtype))
np.nanmax(x), np.nanmax(a=x, axis=1, keepdims=True, initial=0, where=b), np.nanmax(x, out=np.zeros((), x.dtype))
np.nanmin(x), np.nanmin(a=x, axis=1, keepdims=True, initial=0, where=b), np.nanmin(x, out=np.zeros((), x.dtype))
np.nanmean(x), np.nanmean(a=x, axis=1, dtype=np.float64, keepdims=True, where=b), np.nanmean(x, out=np.zeros(()))
np.nanmedian(x), np.nanmedian(a=x, axis=1, keepdims=True, overwrite_input=False), np.nanmedian(x, out=np.zeros(()))
np.nanpercentile(x, 30), np.nanpercentile(a=x, q=[10, 50], axis=1, method="hazen", keepdims=True)
np.nanpercentile(x, 50, out=np.zeros(()), overwrite_input=False)
np.nanquantile(x, 0.3), np.nanquantile(a=x, q=[0.1, 1], axis=0, method="lower", keepdims=True)
np.nanquantile(x, 0.5, out=np.zeros(()), overwrite_input=False)
np.percentile(x, 30), np.percentile(a=x, q=[10, 50], axis=1, method="hazen", keepdims=True)
np.percentile(x, 50, out=np.zeros(()), overwrite_input=False)
np.quantile(x, 0.3), np.quantile(a=x, q=[0.1, 1], axis=0, method="lower", keepdims=True)
np.quantile(x, 0.5, out=np.zeros(()), overwrite_input=False)
np.nanprod(x), np.nanprod(a=x, axis=1, dtype=np.float64, keepdims=True, initial=2, where=b)
np.nanprod(x, out=np.zeros((), x.dtype)), np.nansum(x, out=np.zeros((), x.dtype))
np.nansum(x), np.nansum(a=x, axis=1, dtype=np.float64, keepdims=True, initial=2, where=b)
np.nanstd(x), np.nanstd(a=x, axis=1, dtype=np.float64, ddof=1, keepdims=True, where=b)
np.nanstd(x, out=np.zeros(())), np.nanstd(x, mean=np.nanmean(x, keepdims=True)), np.nanstd(x, correction=1)
np.nanvar(x), np.nanvar(a=x, axis=1, dtype=np.float64, ddof=1, keepdims=True, where=b)
np.nanvar(x, out=np.zeros(())), np.nanvar(x, mean=np.nanmean(x, keepdims=True)), np.nanvar(x, correction=1)
np.std(x), np.std(a=x, axis=1, dtype=np.float64, ddof=1, keepdims=True, where=b)
np.std(x, out=np.zeros(())), np.std(x, mean=np.mean(x, keepdims=True)), np.std(x, correction=1)
np.var(x), np.var(a=x, axis=1, dtype=np.float64, ddof=1, keepdims=True, where=b)
np.var(x, out=np.zeros(())), np.var(x, mean=np.mean(x, keepdims=True)), np.var(x, correction=1)
np.prod(x), np.prod(a=x, axis=1, dtype=np.float64, keepdims=True, initial=2, where=b)
np.prod(x, out=np.zeros((), x.dtype)), np.sum(x, out=np.zeros((), x.dtype))
np.sum(x), np.sum(a=x, axis=1, dtype=np.float64, keepdims=True, initial=2, where=b)
np.ptp(x), np.ptp(a=x, axis=1, keepdims=True), np.ptp(x, out=np.zeros((), x.dtype))
np.trace(x), np.trace(a=x, offset=1, axis1=1, axis2=0, dtype=np.float64), np.trace(x, out=np.zeros((), x.dtype))
np.trapezoid(x), np.trapezoid(y=x, x=v, axis=1), np.trapezoid(x, dx=2.0, axis=0)
"""

ORDER = """
np.argsort(x), np.argsort(a=x, axis=0, kind="stable", order=None), np.argsort(x, stable=True)
np.sort(x), np.sort(a=x, axis=None, kind="mergesort", order=None), np.sort(x, stable=True)
np.lexsort((v, v)), np.lexsort(keys=(x, y), axis=0)
np.partition(v, 2)[2], np.partition(a=x, kth=(0, 1), axis=0, kind="introselect", order=None)[:2]
np.take_along_axis(x, np.argpartition(x, 1), 1)[:, 1], v[np.argpartition(v, 0)[0]]
np.take_along_axis(x, np.argpartition(a=x, kth=1, axis=0, kind="introselect", order=None), 0)[1]
np.searchsorted(np.sort(v), x), np.searchsorted(a=np.sort(v), v=x, side="right")
np.searchsorted(v, x, sorter=np.argsort(v))
np.digitize(x, [0, 1, 2]), np.digitize(x=x, bins=np.sort(v), right=True)
np.isin(x, v), np.isin(element=n, test_elements=[0, 2], assume_unique=True, invert=True, kind="sort")
np.bincount(n, minlength=4), np.bincount(n, weights=v[:3], minlength=5)
np.histogram(n, bins=4, range=(0, 3), density=True, weights=None), np.histogram(a=x, bins=np.arange(3))
np.histogram(n, bins=3, weights=n * 2.0), np.histogram(v)
np.histogram_bin_edges(n, bins=3, range=(0, 2)), np.histogram_bin_edges(a=v, weights=None)
np.histogram2d(n, n, bins=2), np.histogram2d(x=n, y=n, bins=[2, 3], range=[(0, 1), (0, 2)], density=True)
np.histogram2d(n, n, weights=n)
np.histogramdd(n[:, None], bins=2), np.histogramdd(sample=(n, n), bins=2, range=[(0, 1), (0, 2)], density=True)
np.histogramdd((n, n), bins=(2, 2), weights=n)
"""

VALUES = """
np.angle(x), np.angle(z=x, deg=True), np.around(x), np.around(a=x, decimals=1, out=np.zeros((3, 4), x.dtype))
np.round(x), np.round(a=x, decimals=1, out=np.zeros((3, 4), x.dtype))
np.clip(x, 0, 1), np.clip(a=x, a_min=v, a_max=None, out=np.zeros((3, 4), x.dtype)), np.clip(x, min=0, max=2)
np.convolve(v, n), np.convolve(a=n, v=n, mode="same")
np.correlate(n, n[:2]), np.correlate(a=n, v=n, mode="full")
np.cov(x), np.cov(m=v, y=v, rowvar=True, bias=True, ddof=None, fweights=None, aweights=None, dtype=np.float64)
np.cov(x, rowvar=False, ddof=0), np.cov(v, fweights=[1, 2, 1, 0], aweights=[0.5, 1, 1, 2])
np.corrcoef(x[:2]), np.corrcoef(x=v, y=v, rowvar=False, dtype=np.float64)
np.cross(x[:, :3], y[:, :3]), np.cross(a=x[:, :3], b=y[:, :3], axisa=1, axisb=-1, axisc=0)
np.cross(x[:, :3], x[:, 1:], axis=1)
np.diff(x), np.diff(a=x, n=2, axis=0), np.diff(v, prepend=0, append=v[:2])
np.ediff1d(x), np.ediff1d(ary=n, to_end=[1, 2], to_begin=3)
np.fix(x), np.fix(x=x, out=np.zeros((3, 4))), np.gradient(x), np.gradient(x, 2.0, axis=1), np.gradient(v, [0, 1, 3, 4], edge_order=2)
np.imag(x), np.real(x), np.imag(val=x), np.real(val=x), np.real_if_close(x), np.real_if_close(a=x, tol=10)
np.interp(x, [0, 1, 3], [5, 2, 4]), np.interp(x=x, xp=n[::-1] * 0 + [0, 1, 2], fp=v[:3], left=-1, right=9)
np.interp(n, [0, 1, 2], v[:3], period=4)
np.isclose(x, y), np.isclose(a=x, b=y, rtol=0.1, atol=1, equal_nan=True)
np.iscomplex(x), np.isreal(x), np.iscomplexobj(x), np.isrealobj(x)
np.isneginf(x), np.isposinf(x), np.isneginf(x=x, out=np.zeros((3, 4), bool)), np.isposinf(x, out=np.zeros((3, 4), bool))
np.nan_to_num(x), np.nan_to_num(x=x, copy=False, nan=1, posinf=2, neginf=3), x
np.packbits(b), np.packbits(a=b, axis=0, bitorder="little")
np.unpackbits(n.astype(np.uint8)), np.unpackbits(a=n.astype(np.uint8), axis=0, count=9, bitorder="little")
np.piecewise(x, [x < 0, x > 1], [lambda t: -t, 3, 4]), np.piecewise(v, [v < 0], [lambda t, k: t + k, 0], k=2)
np.poly(v), np.polyadd(v, n), np.polysub(n, v), np.polyder(v), np.polyder(p=v, m=2), np.polyint(v)
np.polyint(p=v, m=2, k=[1, 2]), np.polyval(v, x), np.polyval(p=[1, 2, 3], x=x)
np.sinc(x), np.unwrap(x), np.unwrap(p=x, discont=4, axis=0, period=5)
np.apply_along_axis(np.cumsum, 0, x), np.apply_along_axis(lambda r, k, j=0: r * k + j, 1, x, 2, j=1)
np.apply_over_axes(np.sum, x, [0, 1]), np.apply_over_axes(func=np.max, a=x, axes=0)
"""

PRODUCTS = """
np.dot(x, v), np.dot(x, y.T, out=np.zeros((3, 3), x.dtype)), np.inner(x, y), np.outer(v, n)
np.outer(a=v, b=v, out=np.zeros((4, 4), v.dtype)), np.kron(x, n), np.vdot(x, y)
np.einsum("ij,kj->ik", x, y), np.einsum("ij->i", x, optimize=True, dtype=np.float64, casting="safe", order="C")
np.einsum("ij,j", x, v, out=np.zeros(3, x.dtype)), np.einsum_path("ij,kj->ik", x, y, optimize=True)
np.tensordot(x, y, axes=([0, 1], [0, 1])), np.tensordot(a=x, b=v, axes=1)
np.linalg.cross(x[:, :3], y[:, :3], axis=1), np.linalg.diagonal(x, offset=1), np.linalg.outer(v, v)
np.linalg.matmul(x, v), np.linalg.matrix_transpose(x), np.linalg.tensordot(x, v, axes=1)
np.linalg.trace(x, offset=1, dtype=np.float64), np.linalg.vecdot(x, y, axis=0)
np.linalg.multi_dot([x, y.T, x]), np.linalg.multi_dot([x, y.T, x], out=np.zeros((3, 4), x.dtype))
np.linalg.norm(x), np.linalg.norm(x=x, ord=1, axis=(0, 1), keepdims=True)
np.linalg.matrix_norm(x, keepdims=True, ord=np.inf), np.linalg.vector_norm(x, axis=1, keepdims=True, ord=3)
np.linalg.matrix_power(x[:, :3], 3), np.linalg.matrix_power(a=x[:, :3], n=0)
"""

# Of well conditioned matrices: q (4, 4), symmetric and positive definite.
MATRICES = """
np.linalg.cholesky(q), np.linalg.cholesky(q, upper=True)
np.linalg.cond(q), np.linalg.cond(x=q, p=1), np.linalg.det(q), np.linalg.slogdet(q), np.linalg.inv(q)
np.linalg.eigvalsh(q), np.linalg.eigvalsh(a=q, UPLO="U"), np.abs(np.linalg.eigh(q)[1])
np.abs(np.linalg.eigh(a=q, UPLO="U")[1])
np.linalg.lstsq(q[:, :3], w), np.linalg.lstsq(a=q, b=q, rcond=0.1)[3], np.linalg.solve(q, w), np.linalg.solve(a=q, b=q)
np.linalg.matrix_rank(q), np.linalg.matrix_rank(A=q, tol=3, hermitian=True), np.linalg.matrix_rank(q, rtol=0.1)
np.linalg.pinv(q), np.linalg.pinv(a=q, rcond=1e-3, hermitian=True), np.linalg.pinv(q, rtol=0.1)
np.linalg.qr(q), np.linalg.qr(a=q[:, :2], mode="complete")
np.abs(np.linalg.svd(q)[0]), np.linalg.svd(a=q[:, :2], full_matrices=False, compute_uv=True, hermitian=False)[1]
np.linalg.svdvals(q), np.linalg.tensorinv(q.reshape(2, 2, 4), ind=2), np.linalg.tensorinv(a=q.reshape(4, 2, 2), ind=1)
np.linalg.tensorsolve(q.reshape(2, 2, 4), w.reshape(2, 2)), np.linalg.tensorsolve(a=q.reshape(4, 2, 2), b=w, axes=(1, 2)).shape
np.polyfit(w, w * w, 2), np.polyfit(x=w, y=q, deg=1, rcond=1e-9, full=False, w=w * w, cov=False)
"""

METHODS = """
x.all(), b.all(axis=0, keepdims=True, where=b), b.all(out=np.zeros((), bool)), x.any(), b.any(1, np.zeros(3, bool))
b.any(axis=0, keepdims=True, where=b), x.argmax(), x.argmax(axis=1, keepdims=True), x.argmax(0, np.zeros(4, int))
x.argmin(), x.argmin(axis=1, keepdims=True), x.argmin(0, np.zeros(4, int))
x.argsort(), x.argsort(axis=0, kind="stable", order=None), x.argsort(stable=True)
v[v.argpartition(1)[1]], np.take_along_axis(x, x.argpartition(kth=1, axis=0, kind="introselect", order=None), 0)[1]
x.astype(np.float32), x.astype(dtype=np.float64, order="F", casting="unsafe", subok=True, copy=False)
(n % 2).choose([n, n + 1]), (n - 5).choose([n, n], out=np.zeros(3, int), mode="clip")
x.clip(0, 1), x.clip(min=v, max=None, out=np.zeros((3, 4), x.dtype)), x.conj(), x.conjugate()
x.compress([True, False, True], axis=0), v.compress([1, 0], out=np.zeros(1, v.dtype))
x.copy(), x.copy(order="F"), x.cumprod(), x.cumprod(axis=1, dtype=np.float64), v.cumprod(out=np.zeros(4, v.dtype))
x.cumsum(), x.cumsum(axis=1, dtype=np.float64), v.cumsum(out=np.zeros(4, v.dtype))
x.diagonal(), x.diagonal(offset=1, axis1=1, axis2=0), x.dot(v), x.dot(v, out=np.zeros(3, x.dtype))
x.fill(3), x, x.flatten(), x.flatten(order="F"), x.max(), x.max(axis=0, keepdims=True, initial=1, where=b), x.max(0, np.zeros(4, x.dtype))
x.mean(), x.mean(axis=0, dtype=np.float64, keepdims=True, where=b), x.mean(0, out=np.zeros(4))
x.min(), x.min(axis=0, keepdims=True, initial=1, where=b), x.min(0, np.zeros(4, x.dtype))
v.partition(2), v[2], x.partition(kth=0, axis=0, kind="introselect", order=None), x[0]
x.prod(), x.prod(axis=0, dtype=np.float64, keepdims=True, initial=2, where=b), x.prod(0, out=np.zeros(4, x.dtype))
x.put([0, 5], [1, 2]), x, y.put([15], 7, mode="clip"), y, x.ravel(), x.ravel(order="F")
x.repeat(2), x.repeat([1, 0, 2], axis=0), x.reshape(4, 3), x.reshape((2, 6), order="F", copy=True)
x.round(), x.round(decimals=1, out=np.zeros((3, 4), x.dtype)), v.searchsorted(x), v.searchsorted(x, side="right", sorter=np.argsort(v))
x.sort(), x, y.sort(axis=0, kind="stable", order=None), y, v.sort(stable=True), v
x[:1].squeeze(), x[:1].squeeze(axis=0), x.swapaxes(0, 1), x.transpose(), x.transpose(1, 0)
x.std(), x.std(axis=0, dtype=np.float64, ddof=1, keepdims=True, where=b, mean=0.5), x.std(0, out=np.zeros(4)), x.std(correction=1)
x.var(), x.var(axis=0, dtype=np.float64, ddof=1, keepdims=True, where=b, mean=0.5), x.var(0, out=np.zeros(4)), x.var(correction=1)
x.sum(), x.sum(axis=0, dtype=np.float64, keepdims=True, initial=2, where=b), x.sum(0, out=np.zeros(4, x.dtype))
x.take(n), x.take(n, axis=0, mode="wrap"), v.take(n, out=np.zeros(3, v.dtype))
x.trace(), x.trace(offset=1, axis1=1, axis2=0, dtype=np.float64), x.trace(out=np.zeros((), x.dtype))
x.T, x.mT, x.dtype, x.imag, x.real, x.itemsize, x.nbytes, x.ndim, x.shape, x.size, x.view(), x.device, x.to_device("cpu")
"""

# numpy's own answers: no elements are read.
QUESTIONS = """
np.broadcast_shapes((3, 1), (4,)), np.can_cast(x.dtype, float), np.can_cast(from_=np.int8, to=x.dtype, casting="same_kind")
np.common_type(x, y), np.isdtype(x.dtype, "numeric"), np.isdtype(dtype=x.dtype, kind=("bool", "integral"))
np.isscalar(x), np.isscalar(3), np.issubdtype(x.dtype, np.floating), np.issubdtype(arg1=bool, arg2=int)
np.iterable(x), np.iterable(s), np.min_scalar_type(x), np.mintypecode("fd"), np.mintypecode(typechars=["f"], typeset="fd", default="d")
np.promote_types(x.dtype, np.int8), np.result_type(x, n, 2.0), np.typename("d"), np.binary_repr(5, width=8), np.base_repr(9, base=3, padding=2)
np.finfo(np.float64).eps, np.iinfo(np.int8).max
"""

# Keywords that are refused, each as the last one of a call.
REFUSED = """
np.median(x, overwrite_input=True)
np.nanmedian(x, overwrite_input=True)
np.quantile(x, 0.5, overwrite_input=True)
np.quantile(x, 0.5, method="inverted_cdf", weights=x)
np.percentile(x, 50, weights=x)
np.nanquantile(x, 0.5, weights=x)
np.nanpercentile(x, 50, weights=x)
np.polyfit(v, v, 1, full=True)
np.polyfit(v, v, 1, cov=True)
"""
