package redislock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// age is what the Store knows about its server's uptime.
type age struct {
	mu    sync.Mutex
	dials uint64    // connections made at the last look
	born  time.Time // by this machine's clock; zero before the first look
	runs  string    // ids of the servers' runs
}

// Age implements [driver.Ager] with the uptime of the server; in a cluster, of the
// primary that started last. A restart breaks all connections, so Age looks again only
// after new connections were made. With the caller's client, whose connections cannot be
// counted, Age looks every time.
func (s *Store) Age(ctx context.Context) (time.Duration, error) {
	dials := s.conn.Dials()
	s.age.mu.Lock()
	born, fresh := s.age.born, dials > 0 && s.age.dials == dials && !s.age.born.IsZero()
	s.age.mu.Unlock()
	if fresh {
		return time.Since(born), nil
	}
	up, runs, err := s.uptime(ctx)
	if err != nil {
		return 0, err
	}
	s.age.mu.Lock()
	defer s.age.mu.Unlock()
	s.age.dials = dials
	if s.age.born.IsZero() || s.age.runs != runs { // Uptimes are in seconds: a second look could make the server younger.
		s.age.born, s.age.runs = time.Now().Add(-up), runs
	}
	return time.Since(s.age.born), nil
}

// uptime returns the shortest uptime of the primaries, and an identifier of their runs.
func (s *Store) uptime(ctx context.Context) (least time.Duration, runs string, err error) {
	nodes, err := s.conn.Primaries(ctx)
	if err != nil {
		return 0, "", err
	}
	var ids []string
	for i, node := range nodes {
		facts, err := info(ctx, node, "server")
		if err != nil {
			return 0, "", err
		}
		ids = append(ids, facts["run_id"])
		seconds, err := strconv.Atoi(facts["uptime_in_seconds"])
		if err != nil {
			return 0, "", errors.New("INFO does not tell uptime_in_seconds")
		}
		// The difference of two clock readings in seconds: the true uptime may be almost
		// a second less.
		if up := time.Duration(max(seconds-1, 0)) * time.Second; i == 0 || up < least {
			least = up
		}
	}
	slices.Sort(ids)
	return least, strings.Join(ids, " "), nil
}

// Check implements [driver.Checker]. Check warns of servers that remove locks when short
// of memory, and of a URL that sends a password unencrypted.
func (s *Store) Check(ctx context.Context) (warnings []string, err error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	nodes, err := s.conn.Primaries(ctx)
	if err != nil {
		return s.warnings, err
	}
	for _, node := range nodes {
		facts, err := info(ctx, node, "memory")
		if err != nil {
			return s.warnings, err
		}
		if policy := facts["maxmemory_policy"]; policy != "noeviction" && facts["maxmemory"] != "0" && policy != "" {
			return append(slices.Clip(s.warnings), fmt.Sprintf("Redis has maxmemory-policy %s: when it is short of memory it removes locks that are held; set noeviction, or give locks a server of their own", policy)), nil
		}
	}
	return s.warnings, nil
}

// info returns the facts of one section of INFO, or no facts if the server lacks the
// section: miniredis has only two.
func info(ctx context.Context, node Conn, section string) (map[string]string, error) {
	return readInfo(node.Do(ctx, infoOf(section))[0])
}

func infoOf(section string) Command { return Command{Words: []string{"INFO", section}} }

func readInfo(r Reply) (map[string]string, error) {
	switch {
	case r.Err != nil && strings.Contains(r.Err.Error(), "section (") && strings.HasSuffix(r.Err.Error(), ") is not supported"):
		return nil, nil
	case r.Err != nil:
		return nil, r.Err
	}
	text, ok := r.Value.(string)
	if !ok {
		return nil, errReply
	}
	facts := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			facts[name] = value
		}
	}
	return facts, nil
}
