package azurelock_test

import (
	"crypto/rand"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/azurelock"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// Locks stand while the server is killed, and while it is paused.
func TestServerFaults(t *testing.T) {
	t.Parallel()
	server := servers.StartAzurite(t)
	conditionaltest.Faults(t, server, opened(t, server.URL()), opened(t, server.URL()))
}

// A blob that is deleted by hand ends the lock, and the next token is larger.
func TestBlobDeletedByHand(t *testing.T) {
	t.Parallel()
	prefix := strings.ToLower(rand.Text())
	at := under(t, shared.URL(), prefix)
	conditionaltest.Removed(t, opened(t, at), opened(t, at), func() {
		send(t, http.MethodDelete, prefix+"/key", "", nil)
	})
}

// The keys of a prefix are not those of a prefix under it.
func TestKeysOfAnotherPrefix(t *testing.T) {
	t.Parallel()
	prefix := strings.ToLower(rand.Text())
	conditionaltest.Apart(t, opened(t, under(t, shared.URL(), prefix)), opened(t, under(t, shared.URL(), prefix+"/in")), "a/b")
}

// A program that leases the blob of a key stops the key: the error names the lease, and no call
// asks for ever.
func TestLeaseOfAnotherProgram(t *testing.T) {
	t.Parallel()
	prefix := strings.ToLower(rand.Text())
	s := opened(t, under(t, shared.URL(), prefix))
	holder := ask("key", "holder")
	granted(t, s, holder)
	send(t, http.MethodPut, prefix+"/key?comp=lease", "", map[string]string{"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1"})
	if err := renew(t.Context(), s, holder); err == nil || errors.Is(err, driver.ErrLost) || !strings.Contains(err.Error(), "LeaseIdMissing") {
		t.Errorf("renewed: %v, want that the blob has a lease", err)
	}
	send(t, http.MethodPut, prefix+"/key?comp=lease", "", map[string]string{"x-ms-lease-action": "break"})
	if err := renew(t.Context(), s, holder); err != nil {
		t.Errorf("after the lease: %v", err)
	}
}

// One client of 8 wins each race for a blob.
func TestRaces(t *testing.T) {
	t.Parallel()
	at := under(t, shared.URL(), strings.ToLower(rand.Text()))
	conditionaltest.Race(t, 20, func() conditionaltest.Racer { return opened(t, at).(*azurelock.Store).Register() })
}
