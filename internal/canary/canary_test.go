package canary_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/canary"
)

var errDown = errors.New("the server is down")

// A route says to which server each connection leads, in order. The first is the store's own
// connection, and the last letter stands for all further connections. Servers a and b exclude, x
// grants everything, and a connection to - fails.
type route string

// prove counts the connections that Prove has made and ended.
func (r route) prove(t *testing.T) (made int, err error) {
	t.Helper()
	open := 0
	server := func(n int) byte { return r[min(n, len(r)-1)] }
	err = canary.Prove(server(0), func() (byte, func(), error) {
		made++
		if server(made) == '-' {
			return 0, nil, errDown
		}
		open++
		return server(made), func() { open-- }, nil
	}, func(first, second byte) error {
		if first != second || first == 'x' {
			return &canary.Lie{What: "both granted"}
		}
		return nil
	})
	if open != 0 {
		t.Errorf("%s: %d connections were not ended", r, open)
	}
	return made, err
}

func TestProve(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		route route
		made  int
		want  string // lie, doubt, down, or "" for a proof
	}{
		{"aa", 1, ""},
		{"xx", 3, "lie"},           // a server that only looks like one
		{"abababababab", 3, "lie"}, // a balancer that takes turns
		{"aabbab", 1, ""},          // a balancer that sends two connections to one server
		{"abbbbaab", 7, "lie"},     // a balancer that picks by chance
		{"ab", 8, "doubt"},         // a failover before the canary: the own connection is old
		{"abbbbbbbb", 8, "doubt"},
		{"abaaaaaaa", 8, ""}, // one connection was made to another server
		{"aba-", 3, "doubt"}, // evidence, and then no connection
		{"ab-", 2, "doubt"},
		{"a-", 1, "down"},
	} {
		made, err := test.route.prove(t)
		lie, doubt := (*canary.Lie)(nil), (*canary.Doubt)(nil)
		got := ""
		switch {
		case errors.As(err, &lie):
			got = "lie"
		case errors.As(err, &doubt):
			got = "doubt"
		case err == errDown:
			got = "down"
		case err != nil:
			t.Error(err)
		}
		if got != test.want || made != test.made {
			t.Errorf("%s: got %q with %d connections, want %q with %d", test.route, got, made, test.want, test.made)
		}
		if errors.Is(err, driver.ErrInvalid) != (test.want == "lie") {
			t.Errorf("%s: %v; want ErrInvalid of a lie only", test.route, err)
		}
	}
}

// TestFailoverWhileProving moves new connections to another server at any time, once: no canary
// takes that for a lie.
func TestFailoverWhileProving(t *testing.T) {
	t.Parallel()
	for n := range 12 {
		r := route(strings.Repeat("a", n+1) + "b")
		if _, err := r.prove(t); errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%s: %v", r, err)
		}
	}
}

func TestDoubtSaysWhy(t *testing.T) {
	t.Parallel()
	_, err := route("ab-").prove(t)
	if !errors.Is(err, errDown) || !strings.Contains(err.Error(), "as during a failover: both granted: the server is down") {
		t.Error(err)
	}
}

// TestDoubtIsNoRefusal has a new connection refused, as by a standby during a failover.
func TestDoubtIsNoRefusal(t *testing.T) {
	t.Parallel()
	standby := fmt.Errorf("%w: the server is a standby", driver.ErrInvalid)
	if err := (&canary.Doubt{What: "both granted", Cause: standby}); errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), "standby") {
		t.Error(err)
	}
}
