package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Press makes a server run short of memory, as when other clients fill the server with
// similar keys. The server evicts the keys that expire soonest. Press calls evicted for
// each evicted key, and returns when evicted returns true or ctx ends. Then the server has
// room again.
func (r *Redis) Press(ctx context.Context, evicted func(key string) (enough bool)) {
	r.tb.Helper()
	listening, err := r.dial(patience)
	if err == nil {
		defer listening.Close()
		fmt.Fprint(listening, "SUBSCRIBE __keyevent@0__:evicted\r\n")
	}
	var filling net.Conn
	if err == nil {
		filling, err = r.dial(patience)
	}
	if err == nil {
		defer filling.Close()
		err = r.press(ctx, listening, filling, evicted)
	}
	if err != nil {
		r.tb.Fatalf("press %s: %v", r.Addr(), err)
	}
}

func (r *Redis) press(ctx context.Context, listening, filling net.Conn, evicted func(string) bool) error {
	lines := bufio.NewReader(listening)
	if _, err := readReply(lines); err != nil {
		return err
	}
	r.set("notify-keyspace-events", "Ee")
	r.set("maxmemory-policy", "volatile-ttl")
	r.set("maxmemory", r.Info("used_memory"))
	var fillers []string
	err := press(ctx, listening, func() (string, error) {
		message, err := readReply(lines)
		parts, _ := message.([]any)
		if err != nil || len(parts) < 3 {
			return "", err
		}
		return fmt.Sprint(parts[2]), nil
	}, evicted, func() error {
		fillers = append(fillers, fmt.Sprint("filler", len(fillers)))
		_, err := roundTrip(filling, patience, []string{"SET", fillers[len(fillers)-1], strings.Repeat("x", 200)})
		if refused := RedisError(""); errors.As(err, &refused) {
			return nil // The server has nothing to evict just now.
		}
		return err
	})
	r.set("maxmemory", "0")
	r.set("maxmemory-policy", "noeviction")
	for some := range slices.Chunk(fillers, 1000) {
		r.Must(append([]string{"DEL"}, some...)...)
	}
	return err
}

func (r *Redis) set(name, value string) {
	r.tb.Helper()
	r.Must("CONFIG", "SET", name, value)
}

// Press is like [Redis.Press], with items of the sizes that the server has. Among items of
// about one size, the server evicts the least recently used. Press takes long if the
// server has more than a few MB of memory.
func (m *Memcached) Press(ctx context.Context, evicted func(key string) (enough bool)) {
	m.tb.Helper()
	conn, lines, err := m.ask("watch evictions", patience)
	if err == nil {
		defer conn.Close()
		_, err = line(lines)
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	var sizes []int
	if err == nil {
		sizes, err = m.sizes()
	}
	if err != nil {
		m.tb.Fatalf("press %s: %v", m.Addr(), err)
	}
	rounds := 0
	err = press(ctx, conn, func() (string, error) {
		text, err := line(lines)
		_, text, _ = strings.Cut(text, " key=")
		name, _, _ := strings.Cut(text, " ")
		key, wrong := url.PathUnescape(name)
		return key, errors.Join(err, wrong)
	}, evicted, func() error {
		rounds++
		return m.fill(sizes, rounds)
	})
	if err != nil {
		m.tb.Fatalf("press %s: %v", m.Addr(), err)
	}
}

// sizes returns the sizes of the chunks in which the server has items.
func (m *Memcached) sizes() (all []int, err error) {
	items, err := m.stats("stats items", patience)
	if err != nil {
		return nil, err
	}
	slabs, err := m.stats("stats slabs", patience)
	for name := range items {
		class, number := strings.CutSuffix(strings.TrimPrefix(name, "items:"), ":number")
		if size, wrong := strconv.Atoi(slabs[class+":chunk_size"]); number && wrong == nil {
			all = append(all, size)
		}
	}
	return all, err
}

// fill stores some items of each size.
func (m *Memcached) fill(sizes []int, round int) error {
	const some, overhead = 200, 80
	var text strings.Builder
	for _, size := range sizes {
		size = max(size-overhead, 1)
		for n := range some {
			fmt.Fprintf(&text, "set filler%d-%d-%d 0 0 %d\r\n%s\r\n", size, round, n, size, strings.Repeat("x", size))
		}
	}
	conn, lines, err := m.ask(strings.TrimSuffix(text.String(), "\r\n"), patience)
	if err != nil {
		return err
	}
	defer conn.Close()
	for range some * len(sizes) {
		if _, err := line(lines); err != nil {
			return err
		}
	}
	return nil
}

// press calls fill until ctx ends, or until evicted returns true for a key that gone has
// read from conn. press closes conn, and returns the error of fill.
func press(ctx context.Context, conn net.Conn, gone func() (string, error), evicted func(string) bool, fill func() error) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer cancel()
		for {
			key, err := gone()
			if err != nil || key != "" && evicted(key) {
				return
			}
		}
	})
	for ctx.Err() == nil && err == nil {
		err = fill()
	}
	conn.Close()
	reading.Wait()
	return err
}
