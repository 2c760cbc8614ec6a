// A cuFile whose device is this processor: it reads files into memory of the fake driver, by the calls of
// cufile.h. What a call answers, and by which path reads are counted, a test sets.
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <sys/types.h>
#include <unistd.h>

typedef uint64_t u64;
struct Status { int operation, driver; };
struct Descriptor { int kind; union { int fd; void* handle; } of; const void* operations; };
struct Properties {
    struct { unsigned major, minor; size_t poll, direct; unsigned status, control; } module;
    unsigned others[6];
};
struct DeviceStatistics { char uuid[16]; u64 reads[13], writes[11], buffers[5]; };
struct Statistics { u64 basic[64], histograms[64]; uint32_t devices; DeviceStatistics device[16]; };

static std::map<std::string, long> facts;
static std::map<const void*, size_t> buffers;
static std::string statistics;
static u64 by_driver, by_peer, by_host, read_bytes;
static int open_drivers, handles, level;
static bool counting;

static long fact(const char* name) { return facts.count(name) ? facts[name] : 0; }
static Status answer(const char* name) { return {(int)fact(name), 0}; }

// As nvidia-fs writes them with rw_stats_enabled, or without.
static void write_statistics() {
    if (statistics.empty()) return;
    FILE* file = fopen(statistics.c_str(), "w");
    const bool kept = fact("rw_stats_enabled");
    fprintf(file, "GDS Version: 1.14.0.31\nNVFS statistics(ver: 4.0)\nNVFS Driver(version: 2.25.7)\n");
    fprintf(file, "IO stats: %s, peer IO stats: Disabled\n\n", kept ? "Enabled" : "Disabled");
    if (kept) {
        const u64 mebibytes = fact("node_mebibytes") + read_bytes / 1048576;
        fprintf(file, "Reads\t\t\t\t: n=%llu ok=%llu err=0 readMiB=%llu io_state_err=0\n",
                (unsigned long long)by_driver, (unsigned long long)by_driver, (unsigned long long)mebibytes);
        fprintf(file, "Reads\t\t\t\t: Bandwidth(MiB/s)=0 Avg-Latency(usec)=0\n");
    } else fprintf(file, "Reads\t\t\t\t: err=0 io_state_err=0\n");
    fclose(file);
}

extern "C" {
void fake_cufile_reset() {
    facts.clear();
    statistics.clear();
    by_driver = by_peer = by_host = read_bytes = 0;
    level = 0;
    counting = false;
}
void fake_cufile_fact(const char* name, long value) { facts[name] = value; write_statistics(); }
void fake_cufile_statistics(const char* path) { statistics = path; write_statistics(); }
int fake_cufile_alive() { return open_drivers + handles + (int)buffers.size(); }

Status cuFileDriverOpen() {
    const Status status = answer("cuFileDriverOpen");
    open_drivers += !status.operation;
    return status;
}
Status cuFileDriverClose() { open_drivers--; return {0, 0}; }
Status cuFileGetVersion(int* version) { *version = 1150; return answer("cuFileGetVersion"); }
Status cuFileDriverGetProperties(Properties* properties) {
    std::memset(properties, 0, sizeof(Properties));
    properties->module.major = fact("major_version");
    properties->module.status = fact("status_flags");
    properties->module.control = facts.count("control_flags") ? facts["control_flags"] : 2;
    return answer("cuFileDriverGetProperties");
}
Status cuFileHandleRegister(void** handle, Descriptor* descriptor) {
    const Status status = answer("cuFileHandleRegister");
    if (status.operation) return status;
    if (descriptor->kind != 1 || descriptor->operations) return {5022, 0};
    *handle = (void*)(intptr_t)(descriptor->of.fd + 1000);
    handles++;
    return status;
}
void cuFileHandleDeregister(void*) { handles--; }
Status cuFileBufRegister(const void* base, size_t size, int flags) {
    const Status status = answer("cuFileBufRegister");
    if (flags || status.operation) return status;
    buffers[base] = size;
    return status;
}
Status cuFileBufDeregister(const void* base) { return {buffers.erase(base) ? 0 : 5024, 0}; }
ssize_t cuFileRead(void* handle, void* base, size_t size, off_t at, off_t to) {
    if (const long refused = fact("cuFileRead")) { errno = EIO; return refused; }
    if (!buffers.count(base) || to + size > buffers[base]) return -5017;
    void* aligned = std::aligned_alloc(4096, size);
    const ssize_t count = pread((int)(intptr_t)handle - 1000, aligned, size, at);
    if (count > 0) std::memcpy((char*)base + to, aligned, count);
    std::free(aligned);
    if (fact("spoils") && count > 0) ((char*)base)[to] ^= 1;
    const bool direct = fact("by_driver") || fact("by_peer");
    if (counting) {
        by_peer += fact("by_peer");
        by_driver += fact("by_driver");
        by_host += !direct || fact("by_turns");
    }
    if (fact("by_driver")) read_bytes += count;
    if (fact("others_read")) read_bytes += fact("others_read");
    write_statistics();
    return count;
}
Status cuFileSetStatsLevel(int wanted) { level = wanted; return answer("cuFileSetStatsLevel"); }
Status cuFileStatsStart() {
    const Status status = answer("cuFileStatsStart");
    counting = !status.operation && level == 3;
    return status;
}
Status cuFileStatsStop() { counting = false; return {0, 0}; }
Status cuFileGetStatsL3(Statistics* found) {
    if (!counting) return {5022, 0};
    std::memset(found, 0, sizeof(Statistics));
    found->devices = 2;
    found->device[1].reads[5] = by_peer;
    found->device[1].reads[6] = by_driver;
    found->device[1].reads[7] = by_host;
    return {0, 0};
}
}
