package azurelock

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/conditional"
	"github.com/holdfast-go/holdfast/internal/objects"
)

// A service has the blobs of a container. The version of a blob is its ETag, which the service
// makes from the time of the write.
type service struct {
	conditional.Clock
	pipeline  runtime.Pipeline
	at        url.URL // of the container
	sas       string  // the query of every request
	account   string
	container string
}

var _ objects.Bucket = (*service)(nil)

func (s *service) String() string { return "azblob://" + s.account + "/" + s.container }

// apiVersion is the version of the REST API. Each later release of the service knows it.
const apiVersion = "2021-12-02"

// do sends a request once. The answer has been read. what and name are for the error.
func (s *service) do(ctx context.Context, what, method, name, query string, header map[string]string, body []byte) (*http.Response, []byte, error) {
	at := s.at
	if query == "" {
		at.Path += "/" + name
	}
	at.RawQuery = strings.Trim(query+"&"+s.sas, "&")
	plain, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, nil, fmt.Errorf("%s %s/%s: the URL is malformed", what, s, name)
	}
	plain.Header.Set("x-ms-version", apiVersion)
	plain.Header.Set("Accept-Encoding", "identity") // A proxy that compresses makes ETags weak.
	for name, value := range header {
		plain.Header.Set(name, value)
	}
	began := time.Now()
	again := plain.GetBody
	r, err := runtime.NewRequestFromRequest(plain)
	if err != nil {
		return nil, nil, s.failure(ctx, what, name, began, err)
	}
	plain.GetBody = again // That of the SDK rewinds the body, which the transport may still read.
	// Without a limit here, a call would wait for the token that another call has requested,
	// however long that takes. A request whose ctx has ended is not sent.
	got := bounded.Within(ctx, func() *result { return s.exchange(r) })
	switch {
	case got == nil:
		return nil, nil, s.failure(ctx, what, name, began, ctx.Err())
	case got.err != nil:
		return nil, nil, s.failure(ctx, what, name, began, got.err)
	}
	if t, err := http.ParseTime(got.answer.Header.Get("Date")); err == nil {
		s.Note(t)
	}
	return got.answer, got.text, nil
}

// A result is what came of a request.
type result struct {
	answer *http.Response
	text   []byte
	err    error
}

func (s *service) exchange(r *policy.Request) *result {
	answer, err := s.pipeline.Do(r)
	if err != nil {
		return &result{err: err}
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		err = answerOf(answer, text)
	}
	return &result{answer, text, err}
}

const meta = "X-Ms-Meta-"

// sum is the checksum of a blob. The service compares the sum of a write with the data, and keeps
// the sum.
func sum(data []byte) string {
	digest := md5.Sum(data)
	return base64.StdEncoding.EncodeToString(digest[:])
}

// Get implements [objects.Bucket].
func (s *service) Get(ctx context.Context, name string) (objects.Object, error) {
	answer, data, err := s.do(ctx, "read", http.MethodGet, name, "", nil, nil)
	if errors.Is(err, errNoBlob) {
		return objects.Object{}, nil
	}
	if err != nil {
		return objects.Object{}, err
	}
	// A service that keeps ETags apart from the data may serve the ETag of a write with the data
	// of the write before. A swap of such a record would let a second holder in.
	if told := answer.Header.Get("Content-MD5"); told != "" && told != sum(data) {
		return objects.Object{}, fmt.Errorf("read %s/%s: the data do not have the checksum of the answer", s, name)
	}
	o := objects.Object{Data: data, Metadata: make(map[string]string)}
	for name := range answer.Header {
		if key, ok := strings.CutPrefix(name, meta); ok {
			o.Metadata[strings.ToLower(key)] = answer.Header.Get(name)
		}
	}
	o.Version, err = s.version(name, answer)
	return o, err
}

// Put implements [objects.Bucket].
func (s *service) Put(ctx context.Context, name, version string, data []byte, metadata map[string]string) (next string, err error) {
	header := map[string]string{
		"x-ms-blob-type": "BlockBlob", "Content-MD5": sum(data), "Content-Type": "application/octet-stream",
	}
	if version == "" {
		header["If-None-Match"] = "*"
	} else {
		header["If-Match"] = version
	}
	for key, value := range metadata {
		header[meta+key] = value
	}
	answer, _, err := s.do(ctx, "write", http.MethodPut, name, "", header, data)
	if err != nil {
		return "", refused(err)
	}
	return s.version(name, answer)
}

// version returns the ETag of an answer.
func (s *service) version(name string, answer *http.Response) (string, error) {
	version := answer.Header.Get("ETag")
	switch {
	case version == "":
		return "", fmt.Errorf("%s/%s: the answer has no ETag", s, name)
	case strings.HasPrefix(version, "W/"): // No condition matches the ETag, so each swap would be a conflict.
		return "", fmt.Errorf("%s/%s: the answer has the weak ETag %.80s: a proxy has changed the answer", s, name, version)
	}
	return version, nil
}

// Unused returns an ETag of the form of the service.
func (s *service) Unused() string {
	var b [8]byte
	rand.Read(b[:])
	return fmt.Sprintf(`"0x%015X"`, binary.BigEndian.Uint64(b[:])>>4)
}

// A page is a part of the list of blobs.
type page struct {
	Names []string `xml:"Blobs>Blob>Name"`
	Next  string   `xml:"NextMarker"`
}

// List implements [objects.Bucket].
func (s *service) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		// A blob under another slash belongs to a longer prefix.
		query := url.Values{"restype": {"container"}, "comp": {"list"}, "prefix": {prefix}, "delimiter": {"/"}}
		for {
			_, text, err := s.do(ctx, "list", http.MethodGet, prefix, query.Encode(), nil, nil)
			var p page
			if err == nil {
				if wrong := xml.Unmarshal(text, &p); wrong != nil {
					err = fmt.Errorf("list %s/%s: %w", s, prefix, wrong)
				}
			}
			if err != nil {
				yield("", err)
				return
			}
			for _, name := range p.Names {
				if !yield(name, nil) {
					return
				}
			}
			if p.Next == "" {
				return
			}
			query.Set("marker", p.Next)
		}
	}
}
