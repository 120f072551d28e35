package s3lock

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	smithy "github.com/aws/smithy-go/middleware"

	"github.com/holdfast-go/holdfast/internal/conditional"
	"github.com/holdfast-go/holdfast/internal/objects"
)

// A service has the objects of a bucket. The version of an object is its ETag.
type service struct {
	conditional.Clock
	client *s3.Client
	name   string
}

var _ objects.Bucket = (*service)(nil)

func (s *service) String() string { return "s3://" + s.name }

// once keeps the client from retrying. The engine of the locks retries.
func once(o *s3.Options) {
	o.Retryer = aws.NopRetryer{}
	o.HTTPClient = conditional.KeepConnection(o.HTTPClient)
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

// Get implements [objects.Bucket].
func (s *service) Get(ctx context.Context, name string) (objects.Object, error) {
	began := time.Now()
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.name, Key: &name, ChecksumMode: types.ChecksumModeEnabled}, once)
	if err != nil {
		if err = s.failure(ctx, "read", name, began, err); errors.Is(err, errNoObject) {
			return objects.Object{}, nil
		}
		return objects.Object{}, err
	}
	defer out.Body.Close()
	data, err := io.ReadAll(out.Body)
	if err != nil {
		return objects.Object{}, s.failure(ctx, "read", name, began, err)
	}
	version, err := s.version(name, out.ETag, out.ResultMetadata)
	return objects.Object{Version: version, Data: data, Metadata: out.Metadata}, err
}

// Put implements [objects.Bucket].
func (s *service) Put(ctx context.Context, name, version string, data []byte, metadata map[string]string) (next string, err error) {
	in := &s3.PutObjectInput{
		Bucket: &s.name, Key: &name, Body: bytes.NewReader(data),
		ChecksumCRC32: sum(data), Metadata: metadata,
	}
	if version == "" {
		in.IfNoneMatch = aws.String("*")
	} else {
		in.IfMatch = &version
	}
	began := time.Now()
	out, err := s.client.PutObject(ctx, in, once)
	if err != nil {
		return "", refused(s.failure(ctx, "write", name, began, err))
	}
	return s.version(name, out.ETag, out.ResultMetadata)
}

// version notes the clock of the service, and returns an ETag.
func (s *service) version(name string, tag *string, answer smithy.Metadata) (string, error) {
	if t, ok := middleware.GetServerTime(answer); ok {
		s.Note(t)
	}
	version := aws.ToString(tag)
	switch {
	case version == "":
		return "", fmt.Errorf("s3://%s/%s: the answer has no ETag", s.name, name)
	case strings.HasPrefix(version, "W/"): // No condition matches the ETag, so each swap would be a conflict.
		return "", fmt.Errorf("s3://%s/%s: the answer has the weak ETag %.80s: a proxy has changed the answer", s.name, name, version)
	}
	return version, nil
}

// Unused returns an ETag that looks like a digest.
func (s *service) Unused() string {
	var digest [16]byte
	rand.Read(digest[:])
	return fmt.Sprintf(`"%x"`, digest)
}

// List implements [objects.Bucket].
func (s *service) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{
			Bucket: &s.name, Prefix: &prefix, Delimiter: aws.String("/"), // An object under another slash belongs to a longer prefix.
		})
		for pages.HasMorePages() {
			began := time.Now()
			page, err := pages.NextPage(ctx, once)
			if err != nil {
				yield("", s.failure(ctx, "list", prefix, began, err))
				return
			}
			for _, object := range page.Contents {
				if !yield(aws.ToString(object.Key), nil) {
					return
				}
			}
		}
	}
}
