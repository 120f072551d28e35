package verify

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/ext/cmd/holdfast/internal/verify/register"
	"github.com/holdfast-go/holdfast/ext/internal/servers"
)

func wantLeft(t *testing.T, left []string, want ...string) {
	t.Helper()
	if len(left) != len(want) {
		t.Errorf("%q is left, want %q", left, want)
		return
	}
	for i, what := range left {
		if !strings.Contains(what, want[i]) {
			t.Errorf("%q is left, want %q", what, want[i])
		}
	}
}

func TestLeftInRedis(t *testing.T) {
	t.Parallel()
	r := servers.StartRedis(t)
	look := leftInRedis(r)
	r.Must("SET", "holdfast:floor", "7")
	r.Must("SET", "holdfast:soon", "x", "PX", "30000")
	wantLeft(t, look(time.Minute))
	r.Must("SET", "holdfast:late", "x", "PX", "300000")
	wantLeft(t, look(time.Minute), "holdfast:late")
	r.Must("PERSIST", "holdfast:late")
	wantLeft(t, look(time.Minute), "holdfast:late")
	r.Must("DEL", "holdfast:late")
	connect(t, register.Place{Kind: register.Redis, At: r.URL()})
	if left := look(time.Minute); len(left) == 0 || !strings.Contains(left[0], "connection") {
		t.Errorf("%q is left, want a connection", left)
	}
}

func TestLeftInDatabases(t *testing.T) {
	for kind, start := range map[register.Kind]func(t *testing.T) (string, func(time.Duration) []string){
		register.Postgres: func(t *testing.T) (string, func(time.Duration) []string) {
			p := servers.StartPostgres(t)
			return p.URL(), leftInPostgres(p)
		},
		register.MySQL: func(t *testing.T) (string, func(time.Duration) []string) {
			m := servers.StartMariaDB(t)
			return m.URL(), leftInMariaDB(m)
		},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			at, look := start(t)
			wantLeft(t, look(0))
			connect(t, register.Place{Kind: kind, At: at})
			wantLeft(t, look(0), "connection")
		})
	}
}

// connect leaves a connection until the test ends.
func connect(t *testing.T, at register.Place) {
	t.Helper()
	r, err := at.Open(1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if err := r.Create(t.Context(), []register.Name{{Key: "k"}}); err != nil {
		t.Fatal(err)
	}
}

// What goes within a while was not left, and what stays is told.
func TestCount(t *testing.T) {
	looks := 0
	s := &scene{Config: Default(), host: &servers.Host{}, target: &target{engine: &engine{left: func(time.Duration) []string {
		if looks++; looks < 3 {
			return []string{"a key"}
		}
		return nil
	}}}}
	s.count(t.Context())
	if len(s.litter) > 0 || looks != 3 {
		t.Errorf("%q is left after %d looks", s.litter, looks)
	}
	looks = -1 << 20
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	s.count(ctx)
	wantLeft(t, s.litter, "a key")
}
