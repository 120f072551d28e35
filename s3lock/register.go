package s3lock

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithy "github.com/aws/smithy-go/middleware"

	"github.com/holdfast-go/holdfast/caslock"
	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/filename"
)

// A register keeps a record of each key in an object. The version of a record is its ETag.
type register struct {
	client *s3.Client
	bucket string
	prefix string

	proved atomic.Bool  // the bucket keeps conditions
	ahead  atomic.Int64 // nanoseconds by which the clock of this process is certainly behind
}

var (
	_ caslock.Register = (*register)(nil)
	_ caslock.Clock    = (*register)(nil)
)

// once keeps the client from retrying. The engine of the locks retries.
func once(o *s3.Options) {
	o.Retryer = aws.NopRetryer{}
	o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenSupported
	o.DisableLogOutputChecksumValidationSkipped = true
}

// sum is the checksum of an object. A service that keeps ETags apart from the data may serve the
// ETag of a write with the data of the write before. A swap of such a record would let a
// second holder in. If the service knows checksums, the client refuses the record.
func sum(data []byte) *string {
	text := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(data))
	return aws.String(base64.StdEncoding.EncodeToString(text))
}

// name is the name of the object of a key.
func (r *register) name(key string) string { return r.prefix + filename.Of("", key) }

func (r *register) Read(ctx context.Context, key string) (caslock.Record, error) {
	return r.record(ctx, r.name(key))
}

func (r *register) Swap(ctx context.Context, key, version string, data []byte, _ time.Duration) (next string, err error) {
	if err := r.prove(ctx); err != nil {
		return "", fmt.Errorf("%w: %w", driver.ErrUnwritten, err)
	}
	return r.put(ctx, r.name(key), version, data, nil)
}

func (r *register) record(ctx context.Context, name string) (caslock.Record, error) {
	o, err := r.get(ctx, name)
	return caslock.Record{Version: o.version, Data: o.data}, err
}

// An object is what a bucket has under a name; the zero object if there is none.
type object struct {
	version  string
	data     []byte
	metadata map[string]string
}

func (r *register) get(ctx context.Context, name string) (object, error) {
	began := time.Now()
	out, err := r.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &r.bucket, Key: &name, ChecksumMode: types.ChecksumModeEnabled}, once)
	if err != nil {
		if err = r.failure(ctx, "read", name, began, err); errors.Is(err, errNoObject) {
			return object{}, nil
		}
		return object{}, err
	}
	defer out.Body.Close()
	data, err := io.ReadAll(out.Body)
	if err != nil {
		return object{}, r.failure(ctx, "read", name, began, err)
	}
	version, err := r.version(name, out.ETag, out.ResultMetadata)
	return object{version, data, out.Metadata}, err
}

// put writes an object that has the given version; "" means that there must be no object.
func (r *register) put(ctx context.Context, name, version string, data []byte, metadata map[string]string) (next string, err error) {
	in := &s3.PutObjectInput{
		Bucket: &r.bucket, Key: &name, Body: bytes.NewReader(data),
		ChecksumCRC32: sum(data), Metadata: metadata,
	}
	if version == "" {
		in.IfNoneMatch = aws.String("*")
	} else {
		in.IfMatch = &version
	}
	began := time.Now()
	out, err := r.client.PutObject(ctx, in, once)
	if err != nil {
		return "", refused(r.failure(ctx, "write", name, began, err))
	}
	return r.version(name, out.ETag, out.ResultMetadata)
}

// version notes the clock of the service, and returns an ETag.
func (r *register) version(name string, tag *string, answer smithy.Metadata) (string, error) {
	if t, ok := middleware.GetServerTime(answer); ok {
		// The service tells whole seconds, and told them a while ago.
		r.ahead.Store(max(0, int64(time.Until(t))))
	}
	version := aws.ToString(tag)
	switch {
	case version == "":
		return "", fmt.Errorf("s3://%s/%s: the answer has no ETag", r.bucket, name)
	case strings.HasPrefix(version, "W/"): // No condition matches the ETag, so each swap would be a conflict.
		return "", fmt.Errorf("s3://%s/%s: the answer has the weak ETag %.80s: a proxy has changed the answer", r.bucket, name, version)
	}
	return version, nil
}

// Now returns the time of this process, or of the service as of its last answer, if that is later.
func (r *register) Now(context.Context) (time.Time, error) {
	return time.Now().Add(time.Duration(r.ahead.Load())), nil
}

// readers is how many objects List reads at the same time.
const readers = 16

func (r *register) List(ctx context.Context, prefix string) iter.Seq2[caslock.Record, error] {
	return func(yield func(caslock.Record, error) bool) {
		start := r.prefix + filename.Start(prefix)
		pages := s3.NewListObjectsV2Paginator(r.client, &s3.ListObjectsV2Input{
			Bucket: &r.bucket, Prefix: &start, Delimiter: aws.String("/"), // An object under another slash belongs to a longer prefix.
		})
		for pages.HasMorePages() {
			began := time.Now()
			page, err := pages.NextPage(ctx, once)
			if err != nil {
				yield(caslock.Record{}, r.failure(ctx, "list", start, began, err))
				return
			}
			var names []string
			for _, object := range page.Contents {
				if name := aws.ToString(object.Key); !strings.HasPrefix(name, r.prefix+canary) {
					names = append(names, name)
				}
			}
			records, errs := r.readAll(ctx, names)
			for i, record := range records {
				if record.Version == "" && errs[i] == nil {
					continue // removed meanwhile
				}
				if !yield(record, errs[i]) || errs[i] != nil {
					return
				}
			}
		}
	}
}

func (r *register) readAll(ctx context.Context, names []string) (records []caslock.Record, errs []error) {
	records, errs = make([]caslock.Record, len(names)), make([]error, len(names))
	var all sync.WaitGroup
	room := make(chan struct{}, readers)
	for i, name := range names {
		room <- struct{}{} // Every read ends with ctx.
		all.Go(func() {
			records[i], errs[i] = r.record(ctx, name)
			<-room
		})
	}
	all.Wait()
	return records, errs
}
