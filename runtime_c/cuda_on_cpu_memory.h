// Global and shared memory as a kernel's text names it. Under TF_CHECK pointers and __shared__
// arrays are stand-ins that report each access, with its line, to the machine.

namespace tf {

template <class T>
struct without_const {
  typedef T type;
};
template <class T>
struct without_const<const T> {
  typedef T type;
};
template <class T>
struct is_const {
  static const bool value = false;
};
template <class T>
struct is_const<const T> {
  static const bool value = true;
};
template <class T>
using value_t = typename without_const<T>::type;

// The elements of an array type, and how many there are.
template <class T>
struct elements {
  typedef T type;
};
template <class T, size_t N>
struct elements<T[N]> {
  typedef typename elements<T>::type type;
};
template <class T>
using element_t = typename elements<T>::type;

template <class T>
struct describe {
  static constexpr void write(tf_array &) {}
};
template <class T, size_t N>
struct describe<T[N]> {
  static constexpr void write(tf_array &array) {
    array.extents[array.rank++] = N;
    describe<T>::write(array);
  }
};

// What the machine is told of a __shared__ array of type T.
template <class T>
static constexpr tf_array shared_array(const char *name) {
  tf_array array = {};
  array.name = name;
  array.element = sizeof(element_t<T>);
  describe<T>::write(array);
  return array;
}

#if TF_CHECK

// An index, and the line where it stands.
struct place {
  long index;
  int line;
  template <class T>
  place(T index, int line = __builtin_LINE()) : index((long)index), line(line) {}
};

template <class T>
struct pointer;

// An element: reading and writing it are accesses.
template <class T>
struct reference {
  T *at;
  const tf_array *array;
  int line;

  operator value_t<T>() const {
    tf_gpu->access(array, at, sizeof(T), TF_READ, line);
    return *at;
  }
  value_t<T> operator=(value_t<T> value) const {
    tf_gpu->access(array, at, sizeof(T), TF_WRITE, line);
    return *at = value;
  }
  value_t<T> operator=(const reference &other) const { return *this = (value_t<T>)other; }
  pointer<T> operator&() const { return {at, array}; }
#define TF_UPDATE(op) \
  template <class V>  \
  value_t<T> operator op## = (V value) const { return *this = (value_t<T>)((value_t<T>)*this op value); }
  TF_UPDATE(+)
  TF_UPDATE(-)
  TF_UPDATE(*)
  TF_UPDATE(/)
  TF_UPDATE(%)
  TF_UPDATE(&)
  TF_UPDATE(|)
  TF_UPDATE(^)
  TF_UPDATE(<<)
  TF_UPDATE(>>)
  value_t<T> operator++() const { return *this += 1; }
  value_t<T> operator--() const { return *this -= 1; }
};

template <class T>
struct pointer {
  T *at;
  const tf_array *array;

  reference<T> operator[](place i) const { return {at + i.index, array, i.line}; }
  reference<T> operator*() const { return {at, array, 0}; }
  pointer operator+(long k) const { return {at + k, array}; }
  pointer operator-(long k) const { return {at - k, array}; }
  long operator-(pointer other) const { return at - other.at; }
  pointer &operator+=(long k) { return at += k, *this; }
  pointer &operator-=(long k) { return at -= k, *this; }
  operator pointer<const T>() const { return {at, array}; }
};

template <class T>
static inline T plain(T value) { return value; }
template <class T>
static inline value_t<T> plain(reference<T> element) { return element; }

// A __shared__ array, or a row of one; every axis has its bounds.
template <class T>
struct view {
  static reference<T> make(T *at, const tf_array *array, int, int line) { return {at, array, line}; }
};
template <class T, size_t N>
struct view<T[N]> {
  typedef element_t<T> E;
  E *at;
  const tf_array *array;
  int axis;

  static view make(E *at, const tf_array *array, int axis, int) { return {at, array, axis}; }
  auto operator[](place i) const {
    if (i.index < 0 || i.index >= (long)N)
      tf_gpu->outside(array, axis, i.index, i.line);
    return view<T>::make(at + i.index * (long)(sizeof(T) / sizeof(E)), array, axis + 1, i.line);
  }
  operator pointer<E>() const { return {at, array}; }
  pointer<E> operator+(long k) const { return {at + k, array}; }
  pointer<E> operator&() const { return {at, array}; }
};

template <class V, class T>
static inline V load(pointer<T> from, int line) {
  tf_gpu->access(from.array, from.at, sizeof(V), TF_READ, line);
  V value;
  __builtin_memcpy(&value, from.at, sizeof value);
  return value;
}
template <class V, class T>
static inline void store(pointer<T> to, const V &value, int line) {
  tf_gpu->access(to.array, to.at, sizeof(V), TF_WRITE, line);
  __builtin_memcpy(to.at, &value, sizeof value);
}
template <class V, class T, size_t N>
static inline V load(view<T[N]> from, int line) { return load<V>(pointer<element_t<T>>(from), line); }
template <class V, class T, size_t N>
static inline void store(view<T[N]> to, const V &value, int line) { store(pointer<element_t<T>>(to), value, line); }

// The memory itself, for what is read and written whole.
template <class T>
static inline T *raw(pointer<T> from, int bytes, int kind, int line) {
  tf_gpu->access(from.array, from.at, bytes, kind, line);
  return from.at;
}
template <class T, size_t N>
static inline element_t<T> *raw(view<T[N]> from, int bytes, int kind, int line) {
  return raw(pointer<element_t<T>>(from), bytes, kind, line);
}

// The plain address of an array of which nothing is checked from now on.
template <class T>
static inline T *released(pointer<T> array) {
  tf_gpu->release(array.array);
  return array.at;
}
template <class T, size_t N>
static inline element_t<T> *released(view<T[N]> array) {
  return released(pointer<element_t<T>>(array));
}

template <class T, class Change>
static inline T atomic(pointer<T> to, Change change, int line) {
  tf_gpu->access(to.array, to.at, sizeof(T), TF_ATOMIC, line);
  const T before = *to.at;
  *to.at = change(before);
  return before;
}

template <class T>
struct argument {
  static T get(void *from, tf_array *) { return *(T *)from; }
  static constexpr tf_parameter parameter(const char *name) { return {name, 0, 0, sizeof(T)}; }
};
template <class T>
struct argument<pointer<T>> {
  static pointer<T> get(void *from, tf_array *array) { return {*(T **)from, array}; }
  static constexpr tf_parameter parameter(const char *name) { return {name, sizeof(T), is_const<T>::value, sizeof(T *)}; }
};

#define TF_IN(T) tf::pointer<const T>
#define TF_OUT(T) tf::pointer<T>
#define TF_SPTR(T) tf::pointer<T>
#define TF_RAW(array) tf::released(array)
#define TF_SHARED(T, name, dims)                                  \
  static tf_array name##_array = tf::shared_array<T dims>(#name); \
  const tf::view<T dims> name = {(T *)tf_gpu->place(&name##_array, sizeof(T dims)), &name##_array, 0}
#define TF_DYN_SHARED(T, name)                                                                        \
  const tf_array name##_array = {#name, sizeof(T), 0, {}, tf_gpu->dynamic->data, tf_gpu->dynamic, 0}; \
  const tf::pointer<T> name = {(T *)tf_gpu->dynamic->data, &name##_array}

#else

template <class T>
static inline T plain(T value) { return value; }
template <class V, class T>
static inline V load(T *from, int) { return *(const V *)from; }
template <class V, class T>
static inline void store(T *to, const V &value, int) { *(V *)to = value; }
template <class T>
static inline T *raw(T *from, int, int, int) { return from; }
template <class T, class Change>
static inline T atomic(T *to, Change change, int) {
  const T before = *to;
  *to = change(before);
  return before;
}

template <class T>
struct argument {
  static T get(void *from, tf_array *) { return *(T *)from; }
  static constexpr tf_parameter parameter(const char *name) { return {name, 0, 0, sizeof(T)}; }
};
template <class T>
struct argument<T *> {
  static T *get(void *from, tf_array *) { return *(T **)from; }
  static constexpr tf_parameter parameter(const char *name) { return {name, sizeof(T), is_const<T>::value, sizeof(T *)}; }
};
template <class T>
struct argument<T *__restrict> : argument<T *> {};

#define TF_IN(T) const T *__restrict
#define TF_OUT(T) T *__restrict
#define TF_SPTR(T) T *
#define TF_RAW(array) (&(array)[0])
#define TF_SHARED(T, name, dims)                                  \
  static tf_array name##_array = tf::shared_array<T dims>(#name); \
  T(&name)                                                        \
  dims = *(T(*) dims)tf_gpu->place(&name##_array, sizeof(T dims))
#define TF_DYN_SHARED(T, name) T *const name = (T *)tf_gpu->dynamic->data

#endif

// -- kernels

template <int... I>
struct numbers {};
template <int N, int... I>
struct numbers_to : numbers_to<N - 1, N - 1, I...> {};
template <int... I>
struct numbers_to<0, I...> {
  typedef numbers<I...> type;
};

// A kernel as the machine calls it.
template <auto kernel>
struct entry;
template <class... P, void (*kernel)(P...)>
struct entry<kernel> {
  static tf_parameter parameters[sizeof...(P) + 1];

  template <int... I>
  static void call(void *const *arguments, tf_array *const *arrays, numbers<I...>) {
    kernel(argument<P>::get(arguments[I], arrays[I])...);
  }
  static void run(void *const *arguments, tf_array *const *arrays) {
    call(arguments, arrays, typename numbers_to<sizeof...(P)>::type());
  }
  template <int... I>
  static void name_parameters(const char *const *names, numbers<I...>) {
    ((parameters[I] = argument<P>::parameter(names[I])), ...);
  }
  static tf_kernel kernel_of(const char *name, int most_threads, const char *const *names) {
    name_parameters(names, typename numbers_to<sizeof...(P)>::type());
    return {name, run, most_threads, sizeof...(P), parameters};
  }
};
template <class... P, void (*kernel)(P...)>
tf_parameter entry<kernel>::parameters[sizeof...(P) + 1];

} // namespace tf

#define TF_SHARED1(T, name, a) TF_SHARED(T, name, [a])
#define TF_SHARED2(T, name, a, b) TF_SHARED(T, name, [a][b])
#define TF_SHARED3(T, name, a, b, c) TF_SHARED(T, name, [a][b][c])

#define TF_LOAD(V, from) tf::load<V>(from, __LINE__)
#define TF_STORE(V, to, ...) tf::store<V>(to, __VA_ARGS__, __LINE__)
#define tf_ld4(from) TF_LOAD(float4, from)
#define tf_st4(to, ...) TF_STORE(float4, to, __VA_ARGS__)

#define TF_ATOMIC_OF(to, ...) tf::atomic((to), [=](auto tf_before) { return (decltype(tf_before))(__VA_ARGS__); }, __LINE__)
#define atomicAdd(to, value) TF_ATOMIC_OF(to, tf_before + (value))
#define atomicMin(to, value) TF_ATOMIC_OF(to, (value) < tf_before ? (value) : tf_before)
#define atomicMax(to, value) TF_ATOMIC_OF(to, tf_before < (value) ? (value) : tf_before)
#define atomicOr(to, value) TF_ATOMIC_OF(to, tf_before | (value))
#define atomicAnd(to, value) TF_ATOMIC_OF(to, tf_before &(value))
#define atomicExch(to, value) TF_ATOMIC_OF(to, (value))
#define atomicCAS(to, old, value) TF_ATOMIC_OF(to, tf_before == (old) ? (value) : tf_before)
