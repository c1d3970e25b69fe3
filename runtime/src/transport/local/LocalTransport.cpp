// A mailbox for each rank, under a lock; the copy is made outside of it, by the receiver's thread. A message that waits
// in a mailbox refers to its sender's buffer, so a sender that leaves takes its messages back, or waits for the end of
// a copy that has begun:
//
//   waiting -> copying -> taken        waiting -> withdrawn
#include "transport/local/LocalTransport.h"
#include "transport/TicketTable.h"
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <sched.h>

namespace k2c::runtime {
namespace {

enum class State { waiting, copying, taken, withdrawn };

struct Message {
  int32_t source;
  int32_t tag;
  const void *data;
  int64_t bytes;
  std::atomic<State> state{State::waiting};
  std::array<std::byte, maxShortBytes> copy; ///< of a short one
};

struct Mailbox {
  std::mutex lock;
  std::deque<std::shared_ptr<Message>> arrived; ///< guarded by `lock`
  Doorbell bell;
};

class LocalTransport : public Transport {
public:
  LocalTransport(std::shared_ptr<std::vector<Mailbox>> boxes, int32_t self) : boxes(std::move(boxes)), self(self) {}
  ~LocalTransport() override;

  int32_t rank() const override { return self; }
  int32_t ranks() const override { return static_cast<int32_t>(boxes->size()); }
  Ticket send(int32_t peer, int32_t tag, const void *data, int64_t bytes) override;
  Ticket receive(int32_t peer, int32_t tag, void *data, int64_t capacity) override;
  Expected<bool> test(Ticket ticket) override;
  Doorbell &bell() override { return own().bell; }
  /// Peers ring: a nap only bounds how late a deadline is noticed.
  std::chrono::microseconds nap(Pace) const override { return std::chrono::milliseconds(20); }
  Status close() override { return {}; }

private:
  struct Post {
    std::shared_ptr<Message> sent; ///< null: a receive
    int32_t peer;
    int32_t tag;
    void *data;
    int64_t capacity;
  };
  Mailbox &own() const { return (*boxes)[self]; }
  Ticket post(Post added);
  bool take(const Post &wanted);

  const std::shared_ptr<std::vector<Mailbox>> boxes;
  const int32_t self;
  TicketTable<Post> posts;
  std::deque<std::shared_ptr<Message>> unmatched; ///< moved here from the mailbox, in order of arrival
};

LocalTransport::~LocalTransport() {
  for (Post &post : posts.all()) {
    State state = State::waiting;
    if (!post.sent || post.sent->state.compare_exchange_strong(state, State::withdrawn))
      continue;
    while (post.sent->state.load() == State::copying)
      ::sched_yield();
  }
}

Ticket LocalTransport::post(Post added) {
  const Ticket ticket = posts.take();
  posts[ticket] = std::move(added);
  return ticket;
}

Ticket LocalTransport::send(int32_t peer, int32_t tag, const void *data, int64_t bytes) {
  auto message = std::make_shared<Message>();
  message->source = self;
  message->tag = tag;
  message->data = data;
  message->bytes = bytes;
  Post added{message, peer, tag, nullptr, 0};
  if (bytes <= maxShortBytes) {
    std::memcpy(message->copy.data(), data, static_cast<size_t>(bytes));
    message->data = message->copy.data();
    added.sent = std::make_shared<Message>();
    added.sent->state = State::taken;
  }
  Mailbox &box = (*boxes)[peer];
  {
    std::lock_guard<std::mutex> hold(box.lock);
    box.arrived.push_back(std::move(message));
  }
  box.bell.ring();
  return post(std::move(added));
}

Ticket LocalTransport::receive(int32_t peer, int32_t tag, void *data, int64_t capacity) {
  return post({nullptr, peer, tag, data, capacity});
}

/// Copies the first message that `wanted` matches; false: none has arrived.
bool LocalTransport::take(const Post &wanted) {
  const auto found = std::find_if(unmatched.begin(), unmatched.end(), [&](const std::shared_ptr<Message> &message) {
    return message->tag == wanted.tag && (wanted.peer == anyPeer || message->source == wanted.peer);
  });
  if (found == unmatched.end())
    return false;
  const std::shared_ptr<Message> message = *found;
  State state = State::waiting;
  if (!message->state.compare_exchange_strong(state, State::copying)) {
    unmatched.erase(found); // its sender has left
    return false;
  }
  std::memcpy(wanted.data, message->data, static_cast<size_t>(std::min(message->bytes, wanted.capacity)));
  message->state.store(State::taken);
  unmatched.erase(found);
  if (message->bytes > maxShortBytes)
    (*boxes)[message->source].bell.ring();
  return true;
}

Expected<bool> LocalTransport::test(Ticket ticket) {
  Post &post = posts[ticket];
  if (!post.sent) {
    std::lock_guard<std::mutex> hold(own().lock);
    unmatched.insert(unmatched.end(), own().arrived.begin(), own().arrived.end());
    own().arrived.clear();
  }
  if (post.sent ? post.sent->state.load() != State::taken : !take(post))
    return false;
  post.sent = nullptr;
  posts.giveBack(ticket);
  return true;
}

} // namespace

std::vector<std::unique_ptr<Transport>> localTransports(int32_t ranks) {
  auto boxes = std::make_shared<std::vector<Mailbox>>(ranks);
  std::vector<std::unique_ptr<Transport>> transports;
  for (int32_t rank = 0; rank < ranks; ++rank)
    transports.push_back(std::make_unique<LocalTransport>(boxes, rank));
  return transports;
}

} // namespace k2c::runtime
