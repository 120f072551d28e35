package azurelock_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/azurelock"
	"github.com/holdfast-go/holdfast/internal/conditional/conditionaltest"
	"github.com/holdfast-go/holdfast/internal/servers"
)

// container returns the container of the shared emulator.
func container() *azurelock.Container {
	return &azurelock.Container{URL: shared.Endpoint() + "/" + servers.AzureContainer, Account: servers.AzureAccount, Key: shared.Key}
}

// A holder that stalls between its check and its write loses its lock, and is refused by the
// bucket.
func TestGuardedObject(t *testing.T) {
	t.Parallel()
	prefix := strings.ToLower(rand.Text())
	bucket, err := azurelock.NewBucket(container(), prefix+"/")
	if err != nil {
		t.Fatal(err)
	}
	locks := servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) {
		return holdfast.Open(ctx, under(t, shared.URL(), prefix), nil)
	})
	defer locks.Close()
	conditionaltest.Guarded(t, bucket, locks, prefix)
}

// Each write makes another version. So a stalled write is refused although the next holder has
// only read, or has written the data of before.
func TestGuardedObjectWithTheSameData(t *testing.T) {
	t.Parallel()
	bucket, err := azurelock.NewBucket(container(), "")
	if err != nil {
		t.Fatal(err)
	}
	conditionaltest.SameData(t, bucket)
}

// A blob that another program has written has the data as they are.
func TestBlobOfAnotherProgram(t *testing.T) {
	t.Parallel()
	bucket, err := azurelock.NewBucket(container(), "")
	if err != nil {
		t.Fatal(err)
	}
	name := strings.ToLower(rand.Text())
	for _, metadata := range []map[string]string{nil, {azurelock.TokenKey: "33"}} {
		put(t, name, "other \t", metadata)
		if got, err := bucket.Get(t.Context(), name); err != nil || string(got.Data) != "other \t" {
			t.Errorf("%v: %+v, %v; want the whole blob", metadata, got, err)
		}
	}
}

func TestMetadataThatIsNoToken(t *testing.T) {
	t.Parallel()
	bucket, err := azurelock.NewBucket(container(), "")
	if err != nil {
		t.Fatal(err)
	}
	put(t, "strange", "", map[string]string{azurelock.TokenKey: "-1"})
	if got, err := bucket.Get(t.Context(), "strange"); err == nil {
		t.Errorf("%+v, want an error", got)
	}
}
