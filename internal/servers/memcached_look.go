package servers

import (
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Items returns the remaining time of each item in the server, by the name of the item.
// The time is less than 0 if the item does not expire. Items leaves out an item that the
// server moves to another of its lists meanwhile.
func (m *Memcached) Items() map[string]time.Duration {
	m.tb.Helper()
	return awaited(m.tb, "the items of "+m.Addr(), m.items) // the crawler may be busy
}

func (m *Memcached) items() (map[string]time.Duration, error) {
	clock, err := m.stat("stats", "time", patience)
	if err != nil {
		return nil, err
	}
	now, err := strconv.ParseInt(clock, 10, 64)
	if err != nil {
		return nil, err
	}
	conn, lines, err := m.ask("lru_crawler metadump all", patience)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	all := make(map[string]time.Duration)
	for {
		text, err := line(lines)
		if text == "END" || err != nil {
			return all, err
		}
		name, end, err := item(text)
		if err != nil {
			return nil, err
		}
		all[name] = -1
		if end >= 0 {
			all[name] = time.Duration(max(end-now, 0)) * time.Second
		}
	}
}

// item reads a line of the dump: the name of an item, and its expiry.
func item(text string) (name string, end int64, err error) {
	key, rest, _ := strings.Cut(strings.TrimPrefix(text, "key="), " exp=")
	if name, err = url.PathUnescape(key); err != nil {
		return "", 0, err
	}
	number, _, _ := strings.Cut(rest, " ")
	end, err = strconv.ParseInt(number, 10, 64)
	return name, end, err
}

// Connections returns the addresses of the connected clients, without the connection of
// this call.
func (m *Memcached) Connections() []string {
	m.tb.Helper()
	return awaited(m.tb, "the connections of "+m.Addr(), func() (others []string, err error) {
		conn, lines, err := m.ask("stats conns", patience)
		if err != nil {
			return nil, err
		}
		defer conn.Close()
		own := "tcp:" + conn.LocalAddr().String()
		for {
			text, err := line(lines)
			if text == "END" || err != nil {
				return others, err
			}
			_, addr, found := strings.Cut(text, ":addr ")
			if found && addr != own && !strings.HasSuffix(addr, ":"+strconv.Itoa(m.port)) {
				others = append(others, addr)
			}
		}
	})
}
