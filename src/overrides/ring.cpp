// MLX's ring, compiled under another name: ours asks it first and takes over
// where all ranks are on this host (host_ranks.cpp). Headers come before the
// name changes, since some have an init() of their own.
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <future>
#include <iostream>
#include <list>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <unordered_map>

#include <json.hpp>

#include "mlx/backend/cpu/encoder.h"
#include "mlx/distributed/distributed.h"
#include "mlx/distributed/distributed_impl.h"
#include "mlx/distributed/utils.h"
#include "mlx/dtype_utils.h"
#include "mlx/threadpool.h"

#define init init_of_mlx
#include "mlx/distributed/ring/ring.cpp"
