/* What variants of a team may not call, for nobody would count what it sends: collectives but MPI_Alltoallv and
 * MPI_Barrier, messages that MPI buffers, requests that are started again, memory of others. The call is made, so
 * that the run ends as it would, and is a violation that names it. */
#include "watch.h"

/* As MPI declares it. */
#define REFUSED(name, parameters, arguments)                                                                 \
  int MPI_##name parameters {                                                                                \
    watch_refuse("MPI_" #name);                                                                              \
    return PMPI_##name arguments;                                                                            \
  }

#define TO_ALL_IN                                                                                            \
  const void *in, int in_count, MPI_Datatype in_type, void *out, int out_count, MPI_Datatype out_type
#define TO_ALL in, in_count, in_type, out, out_count, out_type
#define OUT_PLACES_IN                                                                                        \
  const void *in, int in_count, MPI_Datatype in_type, void *out, const int out_counts[], const int places[], \
      MPI_Datatype out_type
#define OUT_PLACES in, in_count, in_type, out, out_counts, places, out_type
#define IN_PLACES_IN                                                                                         \
  const void *in, const int in_counts[], const int places[], MPI_Datatype in_type, void *out, int out_count, \
      MPI_Datatype out_type
#define IN_PLACES in, in_counts, places, in_type, out, out_count, out_type
#define REDUCED_IN const void *in, void *out, int count, MPI_Datatype type, MPI_Op op
#define REDUCED in, out, count, type, op

REFUSED(Bcast, (void *data, int count, MPI_Datatype type, int root, MPI_Comm all),
        (data, count, type, root, all))
REFUSED(Reduce, (REDUCED_IN, int root, MPI_Comm all), (REDUCED, root, all))
REFUSED(Allreduce, (REDUCED_IN, MPI_Comm all), (REDUCED, all))
REFUSED(Scan, (REDUCED_IN, MPI_Comm all), (REDUCED, all))
REFUSED(Exscan, (REDUCED_IN, MPI_Comm all), (REDUCED, all))
REFUSED(Reduce_scatter_block, (REDUCED_IN, MPI_Comm all), (REDUCED, all))
REFUSED(Reduce_scatter,
        (const void *in, void *out, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm all),
        (in, out, counts, type, op, all))
REFUSED(Gather, (TO_ALL_IN, int root, MPI_Comm all), (TO_ALL, root, all))
REFUSED(Gatherv, (OUT_PLACES_IN, int root, MPI_Comm all), (OUT_PLACES, root, all))
REFUSED(Allgather, (TO_ALL_IN, MPI_Comm all), (TO_ALL, all))
REFUSED(Allgatherv, (OUT_PLACES_IN, MPI_Comm all), (OUT_PLACES, all))
REFUSED(Scatter, (TO_ALL_IN, int root, MPI_Comm all), (TO_ALL, root, all))
REFUSED(Scatterv, (IN_PLACES_IN, int root, MPI_Comm all), (IN_PLACES, root, all))
REFUSED(Alltoall, (TO_ALL_IN, MPI_Comm all), (TO_ALL, all))

REFUSED(Alltoallw,
        (const void *in, const int in_counts[], const int in_places[], const MPI_Datatype in_types[],
         void *out, const int out_counts[], const int out_places[], const MPI_Datatype out_types[],
         MPI_Comm all),
        (in, in_counts, in_places, in_types, out, out_counts, out_places, out_types, all))
REFUSED(Neighbor_allgather, (TO_ALL_IN, MPI_Comm all), (TO_ALL, all))
REFUSED(Neighbor_allgatherv, (OUT_PLACES_IN, MPI_Comm all), (OUT_PLACES, all))
REFUSED(Neighbor_alltoall, (TO_ALL_IN, MPI_Comm all), (TO_ALL, all))
REFUSED(Neighbor_alltoallv,
        (const void *in, const int in_counts[], const int in_places[], MPI_Datatype in_type, void *out,
         const int out_counts[], const int out_places[], MPI_Datatype out_type, MPI_Comm all),
        (in, in_counts, in_places, in_type, out, out_counts, out_places, out_type, all))

REFUSED(Iscan, (REDUCED_IN, MPI_Comm all, MPI_Request *request), (REDUCED, all, request))
REFUSED(Iexscan, (REDUCED_IN, MPI_Comm all, MPI_Request *request), (REDUCED, all, request))
REFUSED(Ireduce_scatter_block, (REDUCED_IN, MPI_Comm all, MPI_Request *request), (REDUCED, all, request))
REFUSED(Ireduce_scatter,
        (const void *in, void *out, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm all,
         MPI_Request *request),
        (in, out, counts, type, op, all, request))
REFUSED(Ibcast, (void *data, int count, MPI_Datatype type, int root, MPI_Comm all, MPI_Request *request),
        (data, count, type, root, all, request))
REFUSED(Ireduce, (REDUCED_IN, int root, MPI_Comm all, MPI_Request *request), (REDUCED, root, all, request))
REFUSED(Iallreduce, (REDUCED_IN, MPI_Comm all, MPI_Request *request), (REDUCED, all, request))
REFUSED(Igather, (TO_ALL_IN, int root, MPI_Comm all, MPI_Request *request), (TO_ALL, root, all, request))
REFUSED(Igatherv, (OUT_PLACES_IN, int root, MPI_Comm all, MPI_Request *request),
        (OUT_PLACES, root, all, request))
REFUSED(Iallgather, (TO_ALL_IN, MPI_Comm all, MPI_Request *request), (TO_ALL, all, request))
REFUSED(Iallgatherv, (OUT_PLACES_IN, MPI_Comm all, MPI_Request *request), (OUT_PLACES, all, request))
REFUSED(Iscatter, (TO_ALL_IN, int root, MPI_Comm all, MPI_Request *request), (TO_ALL, root, all, request))
REFUSED(Iscatterv, (IN_PLACES_IN, int root, MPI_Comm all, MPI_Request *request),
        (IN_PLACES, root, all, request))
REFUSED(Ialltoall, (TO_ALL_IN, MPI_Comm all, MPI_Request *request), (TO_ALL, all, request))
REFUSED(Ialltoallv,
        (const void *in, const int in_counts[], const int in_places[], MPI_Datatype in_type, void *out,
         const int out_counts[], const int out_places[], MPI_Datatype out_type, MPI_Comm all,
         MPI_Request *request),
        (in, in_counts, in_places, in_type, out, out_counts, out_places, out_type, all, request))

#define SENT_IN const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm all
#define SENT data, count, type, to, tag, all
REFUSED(Bsend, (SENT_IN), (SENT))
REFUSED(Rsend, (SENT_IN), (SENT))
REFUSED(Ibsend, (SENT_IN, MPI_Request *request), (SENT, request))
REFUSED(Irsend, (SENT_IN, MPI_Request *request), (SENT, request))
REFUSED(Send_init, (SENT_IN, MPI_Request *request), (SENT, request))
REFUSED(Ssend_init, (SENT_IN, MPI_Request *request), (SENT, request))
REFUSED(Bsend_init, (SENT_IN, MPI_Request *request), (SENT, request))
REFUSED(Rsend_init, (SENT_IN, MPI_Request *request), (SENT, request))
REFUSED(Sendrecv_replace,
        (void *data, int count, MPI_Datatype type, int to, int out_tag, int from, int in_tag, MPI_Comm all,
         MPI_Status *status),
        (data, count, type, to, out_tag, from, in_tag, all, status))

REFUSED(Win_create, (void *data, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm all, MPI_Win *window),
        (data, bytes, unit, info, all, window))
REFUSED(Win_create_dynamic, (MPI_Info info, MPI_Comm all, MPI_Win *window), (info, all, window))
REFUSED(Win_allocate, (MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm all, void *data, MPI_Win *window),
        (bytes, unit, info, all, data, window))
REFUSED(Win_allocate_shared,
        (MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm all, void *data, MPI_Win *window),
        (bytes, unit, info, all, data, window))
