package gcslock

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"iter"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/bounded"
	"github.com/holdfast-go/holdfast/internal/conditional"
	"github.com/holdfast-go/holdfast/internal/objects"
	"github.com/holdfast-go/holdfast/internal/rest"
)

const google = "https://storage.googleapis.com"

// A service is a bucket, by the JSON API for writes and lists, and by the XML API for reads: a
// download by the JSON API has no metadata. The version of an object is its generation.
type service struct {
	conditional.Clock
	client   *http.Client
	endpoint string
	bucket   string
}

var _ objects.Bucket = (*service)(nil)

func newService(client *http.Client, bucket, endpoint string) (*service, error) {
	endpoint, err := parseEndpoint(cmp.Or(endpoint, google))
	if err != nil {
		return nil, err
	}
	own := *client
	// A redirect is an answer. A redirected POST would become a GET.
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &service{client: &own, endpoint: endpoint, bucket: bucket}, nil
}

func (s *service) String() string { return "gs://" + s.bucket }

// attempts is how often Get downloads an object whose data do not match its checksum.
const attempts = 3

// Get implements [objects.Bucket]. A cache, or an emulator that keeps data and generation apart,
// may serve the generation of one write with the data of another. A swap of such a record would
// let a second holder in, so Get compares the checksum.
func (s *service) Get(ctx context.Context, name string) (o objects.Object, err error) {
	for range attempts {
		if o, err = s.get(ctx, name); !errors.Is(err, errTorn) {
			break
		}
	}
	return o, err
}

func (s *service) get(ctx context.Context, name string) (objects.Object, error) {
	began := time.Now()
	header, data, err := s.send(ctx, http.MethodGet, "/"+s.bucket+"/"+escape(name), nil, "", nil)
	switch {
	case errors.Is(err, errNoObject), s.endpoint != google && errors.Is(err, errMissing): // Emulators have no codes.
		return objects.Object{}, nil
	case err != nil:
		return objects.Object{}, s.failure(ctx, "read", name, began, err)
	}
	o := objects.Object{Version: header.Get("X-Goog-Generation"), Data: data, Metadata: make(map[string]string)}
	if err := generation(o.Version); err != nil {
		return objects.Object{}, s.failure(ctx, "read", name, began, err)
	}
	for _, hashes := range header.Values("X-Goog-Hash") {
		for hash := range strings.SplitSeq(hashes, ",") {
			if want, ok := strings.CutPrefix(strings.TrimSpace(hash), "crc32c="); ok && want != sum(data) {
				return objects.Object{}, s.failure(ctx, "read", name, began, errTorn)
			}
		}
	}
	for key := range header {
		if name, ok := strings.CutPrefix(key, "X-Goog-Meta-"); ok {
			o.Metadata[strings.ToLower(name)] = header.Get(key)
		}
	}
	return o, nil
}

// sum is the CRC-32C of data, as the service writes it.
func sum(data []byte) string {
	text := binary.BigEndian.AppendUint32(nil, crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
	return base64.StdEncoding.EncodeToString(text)
}

// generation returns an error if a text is no generation of an object.
func generation(text string) error {
	if n, err := strconv.ParseUint(text, 10, 63); err != nil || n == 0 {
		return fmt.Errorf("the answer has the generation %.40q", text)
	}
	return nil
}

// head is the resource of an object, as far as Put sets it.
type head struct {
	Name         string            `json:"name"`
	ContentType  string            `json:"contentType"`
	CacheControl string            `json:"cacheControl"` // A cache may keep objects that everybody can read.
	CRC32C       string            `json:"crc32c"`
	Metadata     map[string]string `json:"metadata,omitempty"`
}

// Put implements [objects.Bucket]. If the service has refused the write because the object changes
// too often, Put sends the write again, as long as ctx leaves the time.
func (s *service) Put(ctx context.Context, name, version string, data []byte, metadata map[string]string) (next string, err error) {
	body, kind, err := upload(head{name, "application/octet-stream", "no-store", sum(data), metadata}, data)
	if err != nil {
		return "", err
	}
	query := url.Values{"uploadType": {"multipart"}, "ifGenerationMatch": {cmp.Or(version, "0")}, "fields": {"generation"}}
	for {
		began := time.Now()
		_, answer, err := s.send(ctx, http.MethodPost, "/upload/storage/v1/b/"+s.bucket+"/o", query, kind, body)
		if err != nil {
			err = s.failure(ctx, "write", name, began, err)
			if errors.Is(err, errThrottled) && again(ctx, time.Since(began)) {
				continue
			}
			return "", refused(err)
		}
		var got struct {
			Generation string `json:"generation"`
		}
		if err := json.Unmarshal(answer, &got); err != nil {
			return "", s.failure(ctx, "write", name, began, err)
		}
		if err := generation(got.Generation); err != nil {
			return "", s.failure(ctx, "write", name, began, err)
		}
		return got.Generation, nil
	}
}

// crowded is the longest pause before a write that was refused because the object changes too often.
const crowded = 500 * time.Millisecond

// again pauses before another write, or reports that ctx does not leave the time. took is how long
// the last write took.
func again(ctx context.Context, took time.Duration) bool {
	pause := crowded/2 + rand.N(crowded/2)
	if end, ok := ctx.Deadline(); ok && time.Until(end) <= pause+took {
		return false
	}
	return rest.For(ctx, pause) == nil
}

// upload returns the body of an upload, and its type.
func upload(h head, data []byte) (body []byte, kind string, err error) {
	text, err := json.Marshal(h)
	if err != nil {
		return nil, "", err
	}
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, part := range []struct {
		kind string
		data []byte
	}{{"application/json; charset=utf-8", text}, {h.ContentType, data}} {
		p, err := w.CreatePart(textproto.MIMEHeader{"Content-Type": {part.kind}})
		if err != nil {
			return nil, "", err
		}
		if _, err := p.Write(part.data); err != nil {
			return nil, "", err
		}
	}
	err = w.Close()
	return b.Bytes(), "multipart/related; boundary=" + w.Boundary(), err
}

// List implements [objects.Bucket].
func (s *service) List(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		query := url.Values{"prefix": {prefix}, "delimiter": {"/"}, "fields": {"items(name),nextPageToken"}}
		for {
			began := time.Now()
			_, answer, err := s.send(ctx, http.MethodGet, "/storage/v1/b/"+s.bucket+"/o", query, "", nil)
			var page struct {
				Items []struct {
					Name string `json:"name"`
				} `json:"items"`
				Next string `json:"nextPageToken"`
			}
			if err == nil {
				err = json.Unmarshal(answer, &page)
			}
			if err != nil {
				yield("", s.failure(ctx, "list", prefix, began, err))
				return
			}
			for _, item := range page.Items {
				if !yield(item.Name, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			query.Set("pageToken", page.Next)
		}
	}
}

// Unused implements [objects.Bucket]. Generations count the microseconds since 1970.
func (s *service) Unused() string { return "1" }

// escape writes a name as a path.
func escape(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.Join(parts, "/")
}

// largest is the size of the longest answer. Records and guarded objects are far smaller.
const largest = 64 << 20

// An answer is what the service has answered.
type answer struct {
	header http.Header
	data   []byte
	err    error
}

// send sends one request, and returns the header and the data of a success. send ends with ctx,
// even if the client waits for credentials.
func (s *service) send(ctx context.Context, method, path string, query url.Values, kind string, body []byte) (http.Header, []byte, error) {
	at := s.endpoint + path
	if len(query) > 0 {
		at += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	r.Header.Set("Accept-Encoding", "identity") // The checksum is that of the data as stored.
	if kind != "" {
		r.Header.Set("Content-Type", kind)
	}
	got := bounded.Within(ctx, func() *answer { return s.do(r) })
	if got == nil {
		return nil, nil, ctx.Err()
	}
	return got.header, got.data, got.err
}

func (s *service) do(r *http.Request) *answer {
	got, err := s.client.Do(r)
	if err != nil {
		return &answer{err: err}
	}
	defer got.Body.Close()
	if at, err := http.ParseTime(got.Header.Get("Date")); err == nil {
		s.Note(at)
	}
	data, err := io.ReadAll(io.LimitReader(got.Body, largest))
	switch {
	case got.StatusCode != http.StatusOK:
		return &answer{err: newAnswerError(got.StatusCode, data)}
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = fmt.Errorf("%w: %w", errTorn, err)
	}
	return &answer{got.Header, data, err}
}
