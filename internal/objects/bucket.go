// Package objects keeps the records of package caslock in a bucket of objects, such as those of
// S3, Azure Blob Storage and Google Cloud Storage. A store implements a [Bucket] of four methods
// on the client of a service. Package objects adds the names of the objects, the test that the
// service keeps the conditions of writes, and the objects that package fence guards.
package objects

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/holdfast-go/holdfast/caslock"
)

// ErrNoBucket says that there is no such bucket. Errors of a Bucket match ErrNoBucket.
var ErrNoBucket = errors.New("there is no such bucket")

// A Bucket keeps objects, and writes an object only if its version is as expected. A Bucket sends
// each request once. All methods may be called at the same time. Every call ends with its context.
type Bucket interface {
	caslock.Clock
	fmt.Stringer // the URL of the bucket, without a slash at the end: s3://bucket

	// Get returns the object of a name, the zero Object if there is none. Version and Data come
	// from one write.
	Get(ctx context.Context, name string) (Object, error)

	// Put writes an object if the object has the given version, and returns the next version.
	// If version is empty, Put creates the object if there is none. The errors are those of
	// [caslock.Register].
	Put(ctx context.Context, name, version string, data []byte, metadata map[string]string) (next string, err error)

	// List yields the names of the objects that begin with prefix and have no slash after it.
	// An error ends the sequence.
	List(ctx context.Context, prefix string) iter.Seq2[string, error]

	// Unused returns a version that no object has had. The version looks like a real version,
	// since a service may refuse every other version as malformed.
	Unused() string
}

// An Object is what a Bucket has under a name. The zero Object says that there is none.
type Object struct {
	Version  string
	Data     []byte
	Metadata map[string]string
}
