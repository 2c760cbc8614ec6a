// A CUDA driver whose devices are this processor: memory is the host's, a kernel runs when it is
// launched, and a clock of its own gives every event its time. It knows what the worker uses of the driver.
#include <functional>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

typedef unsigned long long u64;
typedef void (*Run)(unsigned, unsigned, const u64*);

struct Kernel { std::string name; Run run; int arguments; int shared = 49152; };
// A kernel, or what a library of the tests does in its place.
struct Launch { Kernel* kernel; unsigned blocks, threads; std::vector<u64> arguments; std::function<void()> work; };
struct Event { double at; };
struct Stream { bool capturing = false; std::vector<Launch> queue; };
struct Graph { std::vector<Launch> queue; };

static std::map<std::string, Kernel> kernels;
static std::map<std::string, std::string> facts;
static std::set<void*> alive;
static std::vector<std::string> journal;
static double now_us = 0;
static u64 memory = 1ull << 30, used = 0;
static std::map<void*, u64> sizes;
static std::string text;
// What belongs to which device, and the one whose context is current: mixing them up is refused.
static std::map<const void*, int> owners;
static std::map<int, void*> contexts;
static int current = -1;

// Simulated: no kernel runs, and memory of any size reads as the same numbers between 0.25 and 2 as bf16.
static bool simulated = false;
static const u64 tile = 1ull << 26;
static int tile_file() {
    static int file = -1;
    if (file >= 0) return file;
    file = memfd_create("device", 0);
    if (ftruncate(file, tile)) std::abort();
    auto* words = (unsigned short*)mmap(nullptr, tile, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    u64 state = 88172645463325252ull;
    for (u64 i = 0; i < tile / 2; i++) {
        state ^= state << 13; state ^= state >> 7; state ^= state << 17;
        words[i] = (unsigned short)((state & 1) << 15 | (0x3E80 + (state >> 8) % 0x180));
    }
    munmap(words, tile);
    return file;
}
static void* map_tiles(u64 size) {
    size = (size + tile - 1) / tile * tile;
    char* block = (char*)mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (u64 at = 0; at < size; at += tile)
        mmap(block + at, tile, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, tile_file(), 0);
    return block;
}

static void note(const std::string& line) { if (!simulated) journal.push_back(line); }

extern "C" {
// For the tests: kernels by name, how long things take, what was called.
void fake_kernel(const char* name, Run run, int arguments) { kernels[name] = {name, run, arguments}; }
void fake_fact(const char* name, const char* value) { facts[name] = value; }
void fake_reset() {
    facts.clear();
    for (auto& kernel : kernels) kernel.second.shared = 49152;
    journal.clear();
    memory = 1ull << 30;
}
void fake_simulate() { simulated = true; }
void fake_advance(double microseconds) { now_us += microseconds; }
void fake_memory(u64 bytes) { memory = bytes; }
int fake_alive() { return (int)alive.size(); }
void fake_forget() { journal.clear(); }
const char* fake_journal() {
    text.clear();
    for (const auto& line : journal) text += line + "\n";
    return text.c_str();
}
static double microseconds(const std::string& name, double otherwise) {
    return facts.count(name) ? std::atof(facts[name].c_str()) : otherwise;
}

static std::string visible;
int cuInit(unsigned) {
    // Read once it is initialised, as the driver does.
    const char* shown = std::getenv("CUDA_VISIBLE_DEVICES");
    visible = shown ? shown : "";
    // A process of its own is told by its environment.
    const char* told = std::getenv("FAKE_DRIVER_INIT");
    return facts.count("cuInit") ? std::atoi(facts["cuInit"].c_str()) : told ? std::atoi(told) : 0;
}
// NVRTC asks for a table of the driver's; one of no entries has nothing for it.
int cuGetExportTable(const void** table, const void*) {
    static const u64 none[8] = {sizeof(u64)};
    *table = none;
    return 0;
}
int cuDriverGetVersion(int* version) { *version = 13000; return 0; }
int cuDeviceGet(int* device, int ordinal) { *device = ordinal; return ordinal ? 101 : 0; }
// The id of the device that is visible: MIG- and 32 digits in groups.
int cuDeviceGetUuid(unsigned char* uuid, int) {
    std::string digits;
    for (char letter : visible.substr(visible.empty() ? 0 : 4)) if (letter != '-') digits += letter;
    for (int i = 0; i < 16; i++) uuid[i] = digits.size() == 32 ? std::stoi(digits.substr(2 * i, 2), nullptr, 16) : 0;
    return 0;
}
int cuDeviceGetByPCIBusId(int* device, const char* bus) {
    const std::string name = bus;
    const int found = std::atoi(name.substr(9, 2).c_str()) - 17;
    const int there = facts.count("devices") ? std::atoi(facts["devices"].c_str()) : 1;
    if (name.size() != 16 || name.substr(11) != ":00.0" || found < 0 || found >= there) return 101;
    *device = found;
    return 0;
}
int cuDeviceGetPCIBusId(char* bus, int size, int device) {
    std::strncpy(bus, ("0000:" + std::to_string(17 + device) + ":00.0").c_str(), size);
    return 0;
}
int cuDeviceCanAccessPeer(int* can, int device, int peer) {
    *can = device != peer && !facts.count("apart");
    return 0;
}
int cuCtxEnablePeerAccess(void* peer, unsigned flags) {
    if (flags || owners.at(peer) == current) return 1;
    note("reach:" + std::to_string(current) + std::to_string(owners.at(peer)));
    return 0;
}
int cuDeviceGetAttribute(int* value, int which, int) {
    const std::map<int, int> known = {{75, 9}, {76, 0}, {16, 2}, {38, 1 << 20}, {134, -1},
                                      {39, 2048}, {81, 233472}, {97, 232448}, {111, 1024}};
    if (!known.count(which)) return 1;
    const std::string told = "attribute:" + std::to_string(which);
    *value = facts.count(told) ? std::atoi(facts[told].c_str()) : known.at(which);
    return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
    if (const int refused = facts.count("retain") ? std::atoi(facts["retain"].c_str()) : 0) return refused;
    *context = std::malloc(1);
    alive.insert(*context);
    owners[*context] = device;
    contexts[device] = *context;
    note("retain");
    return 0;
}
int cuDevicePrimaryCtxRelease(int device) {
    note("release");
    alive.erase(contexts[device]);
    return 0;
}
int cuCtxSetCurrent(void* context) { current = owners.at(context); return 0; }
int cuCtxSynchronize() { return 0; }
int cuStreamCreate(void** stream, unsigned) {
    *stream = new Stream;
    alive.insert(*stream);
    owners[*stream] = current;
    return 0;
}
int cuStreamDestroy(void* stream) { alive.erase(stream); return 0; }
int cuStreamSynchronize(void*) { return facts.count("sync") ? std::atoi(facts["sync"].c_str()) : 0; }
int cuStreamWaitEvent(void*, void*, unsigned) { note("wait"); return 0; }
int cuStreamBeginCapture(void* stream, int) { ((Stream*)stream)->capturing = true; return 0; }
int cuStreamEndCapture(void* stream, void** graph) {
    auto* captured = new Graph{((Stream*)stream)->queue};
    ((Stream*)stream)->queue.clear();
    ((Stream*)stream)->capturing = false;
    alive.insert(captured);
    *graph = captured;
    return 0;
}
int cuGraphInstantiateWithFlags(void** runnable, void* graph, u64) { *runnable = graph; return 0; }
int cuGraphUpload(void*, void*) { return 0; }
int cuGraphDestroy(void* graph) { alive.erase(graph); return 0; }
int cuGraphExecDestroy(void*) { return 0; }
int cuEventCreate(void** event, unsigned) {
    *event = new Event;
    alive.insert(*event);
    owners[*event] = current;
    return 0;
}
int cuEventDestroy(void* event) { alive.erase(event); return 0; }
int cuEventRecord(void* event, void* stream) {
    if (owners.at(event) != owners.at(stream)) return 400;
    ((Event*)event)->at = now_us;
    note("record");
    return 0;
}
int cuEventSynchronize(void*) {
    while (facts.count("hang")) pause();
    return facts.count("sync_event") ? std::atoi(facts["sync_event"].c_str()) : 0;
}
// The host is ahead of the device, but for the first `begun` times that it is asked.
int cuEventQuery(void*) {
    const int left = facts.count("begun") ? std::atoi(facts["begun"].c_str()) : 0;
    if (left > 0) facts["begun"] = std::to_string(left - 1);
    return left > 0 ? 0 : 600;
}
int cuEventElapsedTime(float* ms, void* start, void* stop) {
    *ms = (float)((((Event*)stop)->at - ((Event*)start)->at) / 1000);
    return 0;
}
int cuMemGetInfo(u64* free, u64* total) { *free = memory - used; *total = memory; return 0; }
int cuMemAlloc(u64* address, u64 size) {
    if (const int refused = facts.count("alloc") ? std::atoi(facts["alloc"].c_str()) : 0) return refused;
    if (size > memory - used) return 2;
    void* block = simulated ? map_tiles(size) : std::aligned_alloc(256, (size + 255) / 256 * 256);
    if (!simulated) std::memset(block, 0xEE, size);
    sizes[block] = size;
    owners[block] = current;
    used += size;
    alive.insert(block);
    *address = (u64)block;
    return 0;
}
int cuMemFree(u64 address) {
    void* block = (void*)address;
    const u64 size = sizes[block];
    used -= size;
    sizes.erase(block);
    alive.erase(block);
    if (simulated) munmap(block, (size + tile - 1) / tile * tile);
    else std::free(block);
    return 0;
}
int cuMemHostAlloc(void** block, u64 size, unsigned) {
    *block = std::aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    alive.insert(*block);
    return 0;
}
int cuMemFreeHost(void* block) { alive.erase(block); std::free(block); return 0; }
static int copy(void* to, const void* from, u64 size, const char* name) {
    std::memcpy(to, from, size);
    now_us += microseconds(name, size / 1e3);
    note(name);
    return 0;
}
int cuMemcpyHtoD(u64 to, const void* from, u64 size) { return copy((void*)to, from, size, "upload"); }
int cuMemcpyDtoH(void* to, u64 from, u64 size) { return copy(to, (void*)from, size, "download"); }
// What copy engines do takes a simulated device no time of the host.
static int engine_copy(void* to, const void* from, u64 size, const char* name) {
    if (!simulated) return copy(to, from, size, name);
    now_us += size / 5e4;
    return 0;
}
int cuMemcpyHtoDAsync(u64 to, const void* from, u64 size, void*) { return engine_copy((void*)to, from, size, "upload"); }
int cuMemcpyDtoHAsync(void* to, u64 from, u64 size, void*) { return engine_copy(to, (void*)from, size, "download"); }
int cuMemcpyDtoDAsync(u64 to, u64 from, u64 size, void*) { return engine_copy((void*)to, (void*)from, size, "device_copy"); }
int cuMemcpyPeerAsync(u64 to, void* to_context, u64 from, void* from_context, u64 size, void*) {
    if (owners.at((void*)to) != owners.at(to_context) || owners.at((void*)from) != owners.at(from_context)) return 1;
    return copy((void*)to, (void*)from, size, "peer");
}
int cuModuleLoadData(void** module, const void* code) {
    if (std::memcmp(code, "\x7f" "ELF", 4)) return 200;
    *module = new char;
    alive.insert(*module);
    return 0;
}
int cuModuleUnload(void* module) { alive.erase(module); return 0; }
int cuModuleGetFunction(void** function, void*, const char* name) {
    if (!kernels.count(name)) return 500;
    *function = &kernels[name];
    return 0;
}
void fake_queue(Stream* stream, void (*work)()) {
    if (stream->capturing) stream->queue.push_back({nullptr, 0, 0, {}, work});
    else work();
}
void fake_queue_call(Stream* stream, void (*work)(void*), void* given) {
    if (stream->capturing) stream->queue.push_back({nullptr, 0, 0, {}, [=] { work(given); }});
    else work(given);
}
int cuFuncSetAttribute(Kernel* kernel, int which, int value) {
    if (which == 9) return value > 100;
    if (which != 8 || value > 232448) return 1;
    kernel->shared = value;
    note("shared:" + std::to_string(value));
    return 0;
}
// By the limits of compute capability 9.0 and no more registers than leave room for every thread.
// More shared memory than a kernel may have leaves no room.
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel* kernel, int threads, u64 shared) {
    *blocks = shared > (u64)kernel->shared ? 0 : std::min({32, 2048 / threads, (int)(233472 / (shared + 1024))});
    return 0;
}
// There is no cache here: it is enough that each array is read once by what empties it, which leaves nothing.
static std::vector<u64> flushed;
static bool is_again(const Launch& launch) {
    if (launch.kernel->name != "flush") return false;
    const bool found = launch.arguments == flushed;
    flushed = launch.arguments;
    return found;
}
static void execute(const Launch& launch) {
    if (launch.work) { launch.work(); return; }
    if (!simulated && !is_again(launch)) launch.kernel->run(launch.blocks, launch.threads, launch.arguments.data());
    now_us += microseconds(launch.kernel->name, 10);
    note(launch.kernel->name);
}
int cuLaunchKernel(Kernel* kernel, unsigned blocks, unsigned y, unsigned z, unsigned threads, unsigned ty, unsigned tz,
                   unsigned shared, Stream* stream, void** parameters, void**) {
    if (y != 1 || z != 1 || ty != 1 || tz != 1 || shared > (unsigned)kernel->shared || !threads || threads > 1024) return 1;
    if (owners.at(stream) != current) return 201;
    Launch launch{kernel, blocks, threads, {}, nullptr};
    for (int i = 0; i < kernel->arguments; i++) launch.arguments.push_back(*(u64*)parameters[i]);
    if (stream->capturing) stream->queue.push_back(launch);
    else execute(launch);
    return 0;
}
int cuGraphLaunch(Graph* graph, void*) {
    note("graph");
    for (const Launch& launch : graph->queue) execute(launch);
    return 0;
}
int cuGetProcAddress(const char* symbol, void** function, int, u64, int* status) {
    // Not among everybody's symbols: those of a library that brings its own C++ would be mixed with ours.
    static void* own = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    *function = dlsym(own, symbol);
    if (status) *status = *function ? 0 : 1;
    return *function ? 0 : 500;
}
int cuGetProcAddress_v2(const char* symbol, void** function, int version, u64 flags, int* status) {
    return cuGetProcAddress(symbol, function, version, flags, status);
}
int cuGetErrorName(int, const char** name) { *name = "refused"; return 0; }
int cuGetErrorString(int, const char** name) { *name = "refused"; return 0; }
}
