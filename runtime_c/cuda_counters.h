// What a GPU would make of the accesses of a warp: the k-th access of each lane at one place of the
// text is one request, which takes as many sectors of 32 bytes (global memory) or as many turns of
// the 32 banks (shared memory) as its addresses need.

enum { TF_SECTOR = 32,
       TF_BANK = 4,
       TF_BANKS = 32,
       TF_MOST_SITES = 4096 };

// A place of the text that accesses an array, and what it cost so far.
typedef struct {
  const char *array; // its name
  int line, kind, shared, bytes;
  unsigned long requests, accesses; // of warps, of threads
  unsigned long transfers;          // sectors, or turns
  unsigned long fewest;             // turns that would do without bank conflicts; 0 for sectors
  int worst;                        // most turns for what one turn could do
} tf_site;

typedef struct {
  unsigned lanes;
  const char *address[TF_WARP];
} tf_request;

typedef struct {
  tf_request *requests[TF_MOST_WARPS];
  size_t room[TF_MOST_WARPS], used[TF_MOST_WARPS];
  unsigned turn[TF_MOST_THREADS]; // accesses of each thread since the last barrier
} tf_pending;

static tf_site tf_sites[TF_MOST_SITES];
static tf_pending *tf_pendings[TF_MOST_SITES];
static int tf_site_count;
static int tf_site_places[4 * TF_MOST_SITES]; // a hash table of numbers of sites plus one

static int tf_site_of(const tf_array *array, int bytes, int kind, int line) {
  const tf_site site = {.array = array->name, .line = line, .kind = kind, .bytes = bytes, .shared = array->memory->shared};
  unsigned long hash = ((unsigned long)site.array >> 3) * 31 + (unsigned long)line * 4 + (unsigned long)kind;
  for (hash *= 0x9e3779b97f4a7c15ul;; hash += 1ul << 50) {
    int *place = &tf_site_places[(hash >> 50) % (4 * TF_MOST_SITES)];
    if (!*place) {
      if (tf_site_count == TF_MOST_SITES)
        return -1;
      tf_sites[tf_site_count] = site;
      *place = ++tf_site_count;
      return tf_site_count - 1;
    }
    const tf_site *found = &tf_sites[*place - 1];
    if (found->array == site.array && found->line == line && found->kind == kind && found->bytes == bytes)
      return *place - 1;
  }
}

static tf_request *tf_request_at(tf_pending *pending, int warp, size_t turn) {
  if (turn >= pending->room[warp]) {
    const size_t room = 2 * turn + 16;
    pending->requests[warp] = realloc(pending->requests[warp], room * sizeof(tf_request));
    if (!pending->requests[warp])
      abort();
    pending->room[warp] = room;
  }
  for (; pending->used[warp] <= turn; pending->used[warp]++)
    pending->requests[warp][pending->used[warp]].lanes = 0;
  return &pending->requests[warp][turn];
}

static void tf_count(const tf_array *array, const char *address, int bytes, int kind, int line) {
  const int site = tf_site_of(array, bytes, kind, line);
  if (site < 0)
    return;
  if (!tf_pendings[site] && !(tf_pendings[site] = calloc(1, sizeof(tf_pending))))
    abort();
  tf_pending *pending = tf_pendings[site];
  const int warp = tf.running / TF_WARP, lane = tf.running % TF_WARP;
  tf_request *request = tf_request_at(pending, warp, pending->turn[tf.running]++);
  request->lanes |= 1u << lane;
  request->address[lane] = address;
}

// How many different sectors the lanes need.
static int tf_sectors(const tf_request *request, int bytes) {
  unsigned long seen[2 * TF_WARP];
  int count = 0;
  for (int lane = 0; lane < TF_WARP; lane++) {
    if (!(request->lanes >> lane & 1))
      continue;
    const unsigned long address = (unsigned long)request->address[lane];
    for (unsigned long sector = address / TF_SECTOR; sector <= (address + bytes - 1) / TF_SECTOR; sector++) {
      int known = 0;
      for (int i = count - 1; i >= 0 && !known; i--) known = seen[i] == sector;
      if (!known)
        seen[count++] = sector;
    }
  }
  return count;
}

// Turns of the banks for lanes [begin, end): the most different words that one bank has to give.
static int tf_turns(const tf_request *request, int bytes, int begin, int end) {
  unsigned long seen[TF_BANKS][TF_WARP];
  int count[TF_BANKS] = {0}, most = 0;
  for (int lane = begin; lane < end; lane++) {
    if (!(request->lanes >> lane & 1))
      continue;
    const unsigned long address = (unsigned long)request->address[lane];
    for (unsigned long word = address / TF_BANK; word <= (address + bytes - 1) / TF_BANK; word++) {
      const int bank = word % TF_BANKS;
      int known = 0;
      for (int i = 0; i < count[bank] && !known; i++) known = seen[bank][i] == word;
      if (!known)
        seen[bank][count[bank]++] = word;
      most = count[bank] > most ? count[bank] : most;
    }
  }
  return most;
}

static void tf_count_request(tf_site *site, const tf_request *request) {
  site->requests++;
  site->accesses += (unsigned long)__builtin_popcount(request->lanes);
  if (!site->shared) {
    site->transfers += (unsigned long)tf_sectors(request, site->bytes);
    return;
  }
  const int lanes = site->bytes <= TF_BANK ? TF_WARP : TF_WARP * TF_BANK / site->bytes;
  for (int begin = 0; begin < TF_WARP; begin += lanes) {
    const int turns = tf_turns(request, site->bytes, begin, begin + lanes);
    site->transfers += (unsigned long)turns;
    site->fewest += turns > 0;
    site->worst = turns > site->worst ? turns : site->worst;
  }
}

// Counts the requests since the last barrier, when every lane has made its own.
static void tf_count_pending(void) {
  for (int site = 0; site < tf_site_count; site++) {
    tf_pending *pending = tf_pendings[site];
    for (int warp = 0; pending && warp < TF_MOST_WARPS; warp++) {
      for (size_t i = 0; i < pending->used[warp]; i++)
        if (pending->requests[warp][i].lanes)
          tf_count_request(&tf_sites[site], &pending->requests[warp][i]);
      pending->used[warp] = 0;
    }
    if (pending)
      memset(pending->turn, 0, sizeof pending->turn);
  }
}

static void tf_reset_counters(void) {
  for (int site = 0; site < tf_site_count; site++) {
    for (int warp = 0; tf_pendings[site] && warp < TF_MOST_WARPS; warp++)
      free(tf_pendings[site]->requests[warp]);
    free(tf_pendings[site]);
    tf_pendings[site] = 0;
  }
  memset(tf_site_places, 0, sizeof tf_site_places);
  tf_site_count = 0;
}
