package s3lock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/conditional"
	"github.com/holdfast-go/holdfast/internal/hosturl"
	"github.com/holdfast-go/holdfast/internal/objects"
	"github.com/holdfast-go/holdfast/internal/silence"
)

func init() { driver.Register("s3", open) }

// openLimit is how long a service may take to answer for the first time.
const openLimit = 5 * time.Second

// A place is what a URL names.
type place struct {
	bucket      string
	region      string
	endpoint    string
	pathStyle   bool
	credentials string
	profile     string
	opts        objects.Options
}

// open opens a bucket, and tests whether it keeps the conditions of writes.
func open(ctx context.Context, u *url.URL) (driver.Store, error) {
	p, err := parse(u)
	switch {
	case errors.Is(err, driver.ErrURL): // like the errors of Params
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	client, transport, err := p.client(ctx)
	if err != nil {
		return nil, err
	}
	s, err := New(client, p.bucket, (*Options)(&p.opts))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	s.close = transport.CloseIdleConnections
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	if err := s.register.Check(limited); err != nil {
		return nil, errors.Join(silence.For(ctx, err, time.Since(began)), s.Close())
	}
	return s, nil
}

// client makes a client as the AWS SDK does: the environment and the shared files say what the
// URL does not.
func (p *place) client(ctx context.Context) (*s3.Client, *http.Transport, error) {
	load := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if p.region != "" {
		load = append(load, config.WithRegion(p.region))
	}
	if p.profile != "" || p.credentials != "" {
		load = append(load, config.WithSharedConfigProfile(cmp.Or(p.profile, "default")))
	}
	if p.credentials != "" {
		load = append(load, config.WithSharedCredentialsFiles([]string{p.credentials}))
	}
	loaded, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, nil, err
	}
	transport := awshttp.NewBuildableClient().GetTransport()
	if c, ok := loaded.HTTPClient.(*awshttp.BuildableClient); ok {
		transport = c.GetTransport() // trusts AWS_CA_BUNDLE
	}
	client := s3.NewFromConfig(loaded, func(o *s3.Options) {
		// A redirect is an answer. A redirected PUT would become a GET.
		redirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		o.HTTPClient = &http.Client{Transport: transport, CheckRedirect: redirect}
		if p.endpoint != "" {
			o.BaseEndpoint = &p.endpoint
		}
		if o.BaseEndpoint == nil {
			return
		}
		// Other services may have no regions, no host for each bucket, and no sums.
		o.Region = cmp.Or(o.Region, "us-east-1")
		o.UsePathStyle = p.pathStyle
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	})
	if client.Options().Region == "" {
		return nil, nil, fmt.Errorf("%w: the region of bucket %s is not known: set AWS_REGION, or write ?region=eu-west-1", driver.ErrURL, p.bucket)
	}
	return client, transport, nil
}

var bucketName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// parse reads a URL.
func parse(u *url.URL) (*place, error) {
	params := driver.NewParams(u)
	p := &place{
		bucket:      u.Host,
		region:      params.Text("region", ""),
		endpoint:    driver.Parse(params, "endpoint", "", "a URL such as https://s3.example.com", parseEndpoint),
		credentials: params.Text("credentials", ""),
		profile:     params.Text("profile", ""),
		opts:        objects.Options{Look: params.Duration("look", 0, conditional.ShortestLook, conditional.LongestLook)},
	}
	p.pathStyle = params.Bool("path_style", true)
	if err := params.Err(); err != nil {
		return nil, err
	}
	if u.User != nil {
		return nil, errors.New("an S3 URL has no user: credentials come from the environment, as for every AWS tool, or from the file of the parameter credentials")
	}
	if u.Opaque != "" || u.Fragment != "" || !bucketName.MatchString(u.Host) {
		return nil, errors.New("want s3://bucket/prefix; the parameter endpoint names a service other than AWS")
	}
	p.opts.Prefix = objects.Prefix(u.Path)
	return p, p.opts.Check()
}

func parseEndpoint(text string) (string, error) {
	_, err := hosturl.Endpoint(text)
	return text, err
}
