package natslock_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/drivertest"
	"github.com/holdfast-go/holdfast/internal/servers"
	_ "github.com/holdfast-go/holdfast/natslock"
)

var shared *servers.NATS

func TestMain(m *testing.M) {
	os.Exit(servers.Main(m, func(tb servers.TB) { shared = servers.StartNATS(tb) }))
}

// opened opens a URL, and makes the stream.
func opened(t testing.TB, url string) driver.Store {
	t.Helper()
	s := servers.Insist(t, func(ctx context.Context) (driver.Store, error) { return driver.Open(ctx, url) })
	t.Cleanup(func() { s.Close() })
	if err := s.(driver.Creator).Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// streams are one stream for each test.
type streams struct{ all sync.Map }

func (s *streams) of(t testing.TB) string {
	own, _ := s.all.LoadOrStore(t, "test-"+strings.ToLower(rand.Text()))
	return own.(string)
}

func harness(url, direct string) drivertest.Harness {
	var own streams
	return drivertest.Harness{
		Lacks: drivertest.Notify,
		Open:  func(t testing.TB) driver.Store { return opened(t, url+"?stream="+own.of(t)) },
		Newer: func(t testing.TB, key string) func() string { return newer(t, direct, own.of(t), key) },
		Linked: func(t testing.TB) (driver.Store, drivertest.Link) {
			p := servers.StartProxy(t, direct)
			return opened(t, "nats://"+p.Addr()+"?stream="+own.of(t)), p
		},
	}
}

// newer turns the record of a key into one of the next format.
func newer(t testing.TB, direct, stream, key string) (record func() string) {
	_, js := dialed(t, "nats://"+direct)
	last := func() *jetstream.RawStreamMsg {
		s, err := js.Stream(context.Background(), stream)
		if err != nil {
			t.Fatal(err)
		}
		for info := s.CachedInfo().State; info.LastSeq >= info.FirstSeq; info.LastSeq-- {
			m, err := s.GetMsg(context.Background(), info.LastSeq)
			var page struct{ Key string }
			if err == nil && json.Unmarshal(m.Data, &page) == nil && page.Key == key {
				return m
			}
		}
		t.Fatalf("key %q has no record", key)
		return nil
	}
	m := last()
	text := strings.Replace(string(m.Data), `"format":1`, `"format":2`, 1)
	if _, err := js.Publish(context.Background(), m.Subject, []byte(text)); err != nil {
		t.Fatal(err)
	}
	return func() string { return string(last().Data) }
}

// Worth 20 s: the whole contract, most of whose rules wait for a TTL or for a server that is
// silent.
func TestContract(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, harness(shared.URL(), shared.Direct()))
}

func BenchmarkStore(b *testing.B) {
	drivertest.Bench(b, harness(shared.URL(), shared.Direct()))
}
