package stores

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/holdfast-go/holdfast/internal/servers"
)

func s3Store() Store {
	return Store{
		Name: "s3", Only: emulated, Title: "S3", Cost: "requests", Waiting: 100, Polls: true, Modules: []string{"github.com/aws/aws-sdk-go-v2/service/s3"},
		Sides: []Side{
			{Name: "Holdfast", Open: holdfastAt, Renews: true},
			{Name: "Holdfast, look=10ms", Open: looking("10ms"), Renews: true, Patient: true},
			{Name: "a lock object, 500 ms", Kind: Bare, Open: openLockObject(500 * time.Millisecond)},
			{Name: "a lock object, 5 ms", Kind: Bare, Open: openLockObject(longPause), Patient: true},
		},
		Start: func(tb servers.TB, _ time.Duration) *Server {
			s := servers.StartS3(tb)
			return &Server{At: []string{s.URL()}, About: s.Version(), Count: func(Side) int { return s.Requests() }}
		},
	}
}

// looking opens the Holdfast side with waiters that look at the bucket more or less often.
func looking(pause string) opener {
	return func(at []string, ttl time.Duration) (*Library, error) {
		return holdfastAt([]string{at[0] + "&look=" + pause}, ttl)
	}
}

// openLockObject is the lock that programs with a bucket write by hand: an object with the
// time when the lock ends. The object is created, or replaced if the time is over. The clocks
// of all clients must agree.
func openLockObject(pause time.Duration) opener {
	return func(at []string, ttl time.Duration) (*Library, error) { return newLockObject(at, ttl, pause) }
}

func newLockObject(at []string, ttl, pause time.Duration) (*Library, error) {
	u, err := url.Parse(at[0])
	if err != nil {
		return nil, err
	}
	q := u.Query()
	loaded, err := config.LoadDefaultConfig(context.Background(), config.WithRegion(q.Get("region")),
		config.WithSharedConfigProfile("default"), config.WithSharedCredentialsFiles([]string{q.Get("credentials")}))
	if err != nil {
		return nil, err
	}
	o := &lockObject{bucket: u.Host, ttl: ttl, pause: pause, client: s3.NewFromConfig(loaded, func(o *s3.Options) {
		o.BaseEndpoint, o.UsePathStyle = aws.String(q.Get("endpoint")), true
	})}
	return &Library{o.lock, func() {}}, nil
}

type lockObject struct {
	client *s3.Client
	bucket string
	ttl    time.Duration
	pause  time.Duration // between two attempts
}

// content is the text of a lock object.
type content struct {
	Ends time.Time `json:"ends"`
}

func (o *lockObject) lock(ctx context.Context, key string) (func() error, error) {
	// In no folder: the test server removes an empty folder, and a PutObject at that moment fails.
	name := "bare-" + key
	var version *string
	err := poll(ctx, o.pause, func() (ok bool, err error) {
		version, err = o.take(ctx, name)
		return version != nil, err
	})
	return func() error {
		_, err := o.client.DeleteObject(context.Background(), &s3.DeleteObjectInput{Bucket: &o.bucket, Key: &name, IfMatch: version})
		return gone(!refused(err), err)
	}, err
}

// take returns the version of the object that take has written, nil if the lock is held.
func (o *lockObject) take(ctx context.Context, name string) (version *string, err error) {
	put := &s3.PutObjectInput{Bucket: &o.bucket, Key: &name}
	out, err := o.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &o.bucket, Key: &name})
	switch {
	case refused(err):
		put.IfNoneMatch = aws.String("*")
	case err != nil:
		return nil, err
	default:
		defer out.Body.Close()
		var was content
		if err := json.NewDecoder(out.Body).Decode(&was); err != nil || time.Now().Before(was.Ends) {
			return nil, err
		}
		put.IfMatch = out.ETag
	}
	text, err := json.Marshal(content{time.Now().Add(o.ttl)})
	if err != nil {
		return nil, err
	}
	put.Body = strings.NewReader(string(text))
	done, err := o.client.PutObject(ctx, put)
	switch {
	case refused(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return done.ETag, nil
}

// refused reports whether an object is missing, or has another version.
func refused(err error) bool {
	var answer *smithyhttp.ResponseError
	return errors.As(err, &answer) && (answer.HTTPStatusCode() == http.StatusNotFound || answer.HTTPStatusCode() == http.StatusPreconditionFailed)
}
