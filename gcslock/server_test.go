package gcslock_test

import (
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/gcslock"
	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// Locks stand while the server is killed, and while it is paused.
func TestServerFaults(t *testing.T) {
	t.Parallel()
	server := servers.StartGCS(t)
	conditionaltest.Faults(t, server, opened(t, server.URL()), opened(t, server.URL()))
}

// An object that is deleted by hand ends the lock, and the next token is larger.
func TestObjectDeletedByHand(t *testing.T) {
	t.Parallel()
	prefix := strings.ToLower(rand.Text())
	at := under(t, shared.URL(), prefix)
	conditionaltest.Removed(t, opened(t, at), opened(t, at), func() {
		do(t, http.MethodDelete, "/storage/v1/b/"+servers.GCSBucket+"/o/"+url.PathEscape(prefix+"/key"), "")
	})
}

// The keys of a prefix are not those of a prefix under it.
func TestKeysOfAnotherPrefix(t *testing.T) {
	t.Parallel()
	prefix := strings.ToLower(rand.Text())
	conditionaltest.Apart(t, opened(t, under(t, shared.URL(), prefix)), opened(t, under(t, shared.URL(), prefix+"/in")), "a/b")
}

// One client of 8 wins each race for an object.
func TestRaces(t *testing.T) {
	t.Parallel()
	at := under(t, shared.URL(), strings.ToLower(rand.Text()))
	conditionaltest.Race(t, 60, func() conditionaltest.Racer { return opened(t, at).(*gcslock.Store).Register() })
}
