package s3lock_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/s3lock"
)

// Locks stand while the server is killed, and while it is paused.
func TestServerFaults(t *testing.T) {
	t.Parallel()
	server := servers.StartS3(t)
	conditionaltest.Faults(t, server, opened(t, server.URL()), opened(t, server.URL()))
}

// An object that is deleted by hand ends the lock, and the next token is larger.
func TestObjectDeletedByHand(t *testing.T) {
	t.Parallel()
	prefix := strings.ToLower(rand.Text())
	at := under(t, shared.URL(), prefix)
	conditionaltest.Removed(t, opened(t, at), opened(t, at), func() {
		if _, err := client(t).DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(servers.S3Bucket), Key: aws.String(prefix + "/key")}); err != nil {
			t.Fatal(err)
		}
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
	conditionaltest.Race(t, 60, func() conditionaltest.Racer { return opened(t, at).(*s3lock.Store).Register() })
}
