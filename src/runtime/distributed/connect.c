// SPDX-License-Identifier: Apache-2.0
// Sockets between all processes: each one connects to those before it, and is connected to by those behind it.
#include "runtime/distributed/job.h"

#include "base/built.h"
#include "base/status.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

// The longest that one address is tried, and that a stranger may keep silent.
#define TRY_NS INT64_C(10000000000)
#define STRANGER_NS INT64_C(10000000000)

// The first words of who connects: whom it wants and who it is; and the answer.
enum { FOR_CONTROL, FOR_DATA };
struct hello {
    unsigned char token[16];
    int32_t process, purpose;
};
struct answer {
    unsigned char token[16];
};

// ---- own address ----

static bool take_ip(struct address *a, const struct sockaddr *s)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    unsigned char *ip = a->ip[a->n_ips];
    if (a->n_ips == ADDRESS_COUNT || !s)
        return false;
    if (s->sa_family == AF_INET) {
        memcpy(ip, mapped, sizeof mapped);
        memcpy(ip + 12, &((const struct sockaddr_in *)(const void *)s)->sin_addr, 4);
    } else if (s->sa_family == AF_INET6) {
        const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)s)->sin6_addr;
        if (IN6_IS_ADDR_LINKLOCAL(six))
            return false;
        memcpy(ip, six, 16);
    } else {
        return false;
    }
    a->n_ips++;
    return true;
}

// That of interfaces other than the loopback.
static jot_status find_ips(const char *interface, struct address *out)
{
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0)
        return interface ? status_fail(JOT_ERR_IO, "the network interfaces are not known: %s",
                                       strerror(errno))
                         : JOT_OK;
    for (struct ifaddrs *i = all; i; i = i->ifa_next)
        if (i->ifa_flags & IFF_UP && !(i->ifa_flags & IFF_LOOPBACK) &&
            (!interface || !strcmp(interface, i->ifa_name)))
            take_ip(out, i->ifa_addr);
    freeifaddrs(all);
    if (interface && !out->n_ips)
        return status_fail(JOT_ERR_ARGUMENT,
                           "jot_distributed_start: no network interface '%s' has an address",
                           interface);
    return JOT_OK;
}

// Machines are told apart by when they were started, and in a machine the networks of containers.
static uint64_t find_network(void)
{
    char boot[64] = "";
    struct stat net = {0};
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!f)
        return 0;
    size_t n = fread(boot, 1, sizeof boot, f);
    fclose(f);
    if (!n || stat("/proc/self/ns/net", &net) != 0)
        return 0;
    return hash_combine(hash_bytes(0, boot, n), (uint64_t)net.st_ino);
}

static int listen_at(int family, uint16_t *out_port)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } at = {0};
    socklen_t size = family == AF_INET6 ? sizeof at.six : sizeof at.four;
    int off = 0, fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    at.any.sa_family = (sa_family_t)family;
    if (family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, &at.any, size) != 0 || listen(fd, SOMAXCONN) != 0 ||
        getsockname(fd, &at.any, &size) != 0) {
        close(fd);
        return -1;
    }
    *out_port = ntohs(family == AF_INET6 ? at.six.sin6_port : at.four.sin_port);
    return fd;
}

jot_status address_make(const char *interface, struct address *out, int *out_socket)
{
    *out = (struct address){.pid = (int32_t)getpid(), .network = find_network()};
    snprintf(out->build, sizeof out->build, "%s", BUILT);
    gethostname(out->machine, sizeof out->machine - 1);
    if (getrandom(out->token, sizeof out->token, 0) != sizeof out->token)
        return status_fail(JOT_ERR_IO, "the system gives no random numbers: %s",
                           strerror(errno));
    JOT_TRY(find_ips(interface, out));
    int fd = listen_at(AF_INET6, &out->port);
    if (fd < 0)
        fd = listen_at(AF_INET, &out->port);
    if (fd < 0)
        return status_fail(JOT_ERR_IO, "no socket can listen: %s", strerror(errno));
    *out_socket = fd;
    return JOT_OK;
}

// ---- bytes with a limit of time ----

static bool write_all(int fd, const void *bytes, size_t n, int64_t end)
{
    const char *at = bytes;
    while (n) {
        ssize_t done = send(fd, at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (done > 0)
            at += done, n -= (size_t)done;
        else if (done < 0 && errno != EINTR &&
                 (errno != EAGAIN || !socket_wait(fd, POLLOUT, end)))
            return false;
    }
    return true;
}

static bool read_all(int fd, void *bytes, size_t n, int64_t end)
{
    char *at = bytes;
    while (n) {
        ssize_t done = recv(fd, at, n, MSG_DONTWAIT);
        if (done > 0)
            at += done, n -= (size_t)done;
        else if (done == 0 ||
                 (errno != EINTR && (errno != EAGAIN || !socket_wait(fd, POLLIN, end))))
            return false;
    }
    return true;
}

static void set_up(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// ---- to those before ----

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

// A socket to the address, or -1 with errno.
static int try_ip(const unsigned char ip[16], uint16_t port, int64_t end)
{
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } at = {0};
    struct in6_addr six;
    socklen_t size;
    memcpy(&six, ip, 16);
    if (IN6_IS_ADDR_V4MAPPED(&six)) {
        at.four = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
        memcpy(&at.four.sin_addr, ip + 12, 4);
        size = sizeof at.four;
    } else {
        at.six = (struct sockaddr_in6){
            .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = six};
        size = sizeof at.six;
    }
    int fd = socket(at.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    int fault = connect(fd, &at.any, size) == 0 ? 0 : errno;
    socklen_t n = sizeof fault;
    if (fault == EINPROGRESS && !socket_wait(fd, POLLOUT, end))
        fault = ETIMEDOUT;
    else if (fault == EINPROGRESS)
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &fault, &n);
    if (fault) {
        close(fd);
        errno = fault;
        return -1;
    }
    set_up(fd);
    return fd;
}

// Says whom it wants, and hears whether that is the one.
static bool greet(const struct job *job, int process, int purpose, int fd, int64_t end)
{
    struct hello hello = {.process = job->index, .purpose = purpose};
    struct answer answer;
    memcpy(hello.token, job->peers[process].address.token, sizeof hello.token);
    return write_all(fd, &hello, sizeof hello, end) &&
           read_all(fd, &answer, sizeof answer, end) &&
           !memcmp(answer.token, job->peers[job->index].address.token, sizeof answer.token);
}

static int connect_to(const struct job *job, int process, int purpose, int64_t end)
{
    const struct address *a = &job->peers[process].address;
    const struct address *own = &job->peers[job->index].address;
    static const unsigned char loopback[16] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
    bool is_near = a->network && a->network == own->network;
    errno = EADDRNOTAVAIL;
    for (int i = is_near ? -1 : 0; i < a->n_ips; i++) {
        int64_t limit = earlier(end, clock_ns() + TRY_NS);
        int fd = try_ip(i < 0 ? loopback : a->ip[i], a->port, limit);
        if (fd < 0)
            continue;
        // The answer comes when that process has connected to those before it.
        if (greet(job, process, purpose, fd, end))
            return fd;
        close(fd);
        errno = ECONNREFUSED;
    }
    return -1;
}

// ---- from those behind ----

static int *socket_of(struct job *job, const struct hello *hello)
{
    if (hello->process <= job->index || hello->process >= job->count ||
        memcmp(hello->token, job->peers[job->index].address.token, sizeof hello->token) != 0)
        return NULL;
    struct peer *p = &job->peers[hello->process];
    int *at = hello->purpose == FOR_CONTROL ? &p->control
              : hello->purpose == FOR_DATA  ? &p->data
                                            : NULL;
    return at && *at < 0 ? at : NULL;
}

// Whether one of the job came; strangers are sent away.
static bool accept_one(struct job *job, int listening, int64_t end)
{
    struct hello hello;
    struct answer answer;
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0)
        return false;
    set_up(fd);
    int64_t limit = earlier(end, clock_ns() + STRANGER_NS);
    int *at = read_all(fd, &hello, sizeof hello, limit) ? socket_of(job, &hello) : NULL;
    if (at)
        memcpy(answer.token, job->peers[hello.process].address.token, sizeof answer.token);
    if (!at || !write_all(fd, &answer, sizeof answer, limit)) {
        close(fd);
        return false;
    }
    *at = fd;
    return true;
}

static int first_missing(const struct job *job)
{
    for (int i = job->index + 1; i < job->count; i++)
        if (job->peers[i].control < 0 || job->peers[i].data < 0)
            return i;
    return -1;
}

jot_status job_connect(struct job *job, int listening, int64_t end)
{
    char name[NAME_BYTES];
    for (int i = 0; i < job->index; i++) {
        struct peer *p = &job->peers[i];
        p->control = connect_to(job, i, FOR_CONTROL, end);
        if (p->control >= 0)
            p->data = connect_to(job, i, FOR_DATA, end);
        if (p->data < 0)
            return status_fail(JOT_ERR_DEVICE, "%s cannot be reached: %s",
                               job_name(job, i, name), strerror(errno));
    }
    for (int missing; (missing = first_missing(job)) >= 0;)
        if (!accept_one(job, listening, end) && !socket_wait(listening, POLLIN, end))
            return status_fail(JOT_ERR_DEVICE, "%s has not come", job_name(job, missing, name));
    return JOT_OK;
}
