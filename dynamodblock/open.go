package dynamodblock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/conditional"
	"github.com/holdfast-go/holdfast/internal/hosturl"
	"github.com/holdfast-go/holdfast/internal/silence"
)

func init() { driver.Register("dynamodb", open) }

// openLimit is how long a service may take to answer for the first time.
const openLimit = 5 * time.Second

// A place is what a URL names.
type place struct {
	table       string
	region      string
	endpoint    string
	credentials string
	profile     string
	opts        Options
}

// open opens a table, and tests whether its engine keeps the conditions of writes. A missing table is
// no error, so that Create can make the table. Check reports the table.
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
	s, err := New(client, p.table, &p.opts)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrURL, err)
	}
	s.close = transport.CloseIdleConnections
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	if err := s.register.prove(limited); err != nil && !errors.Is(err, errNoTable) {
		return nil, errors.Join(silence.For(ctx, err, time.Since(began)), s.Close())
	}
	return s, nil
}

// client makes a client as the AWS SDK does: the environment and the shared files say what the
// URL does not.
func (p *place) client(ctx context.Context) (*dynamodb.Client, *http.Transport, error) {
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
	client := dynamodb.NewFromConfig(loaded, func(o *dynamodb.Options) {
		// A redirect is an answer. A redirected POST would become a GET.
		redirect := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		o.HTTPClient = &http.Client{Transport: transport, CheckRedirect: redirect}
		if p.endpoint != "" {
			o.BaseEndpoint = &p.endpoint
		}
		if o.BaseEndpoint != nil {
			o.Region = cmp.Or(o.Region, "us-east-1") // Other engines may have no regions.
		}
	})
	if client.Options().Region == "" {
		return nil, nil, fmt.Errorf("%w: the region of table %s is not known: set AWS_REGION, or write ?region=eu-west-1", driver.ErrURL, p.table)
	}
	return client, transport, nil
}

// The length is compared apart: {3,255} would take milliseconds to compile whenever a program starts.
var tableName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// parse reads a URL.
func parse(u *url.URL) (*place, error) {
	params := driver.NewParams(u)
	p := &place{
		table:       u.Host,
		region:      params.Text("region", ""),
		endpoint:    driver.Parse(params, "endpoint", "", "a URL such as http://localhost:8000", parseEndpoint),
		credentials: params.Text("credentials", ""),
		profile:     params.Text("profile", ""),
		opts: Options{
			Prefix: params.Text("prefix", DefaultPrefix),
			Look:   params.Duration("look", 0, conditional.ShortestLook, conditional.LongestLook),
		},
	}
	if err := params.Err(); err != nil {
		return nil, err
	}
	if u.User != nil {
		return nil, errors.New("a DynamoDB URL has no user: credentials come from the environment, as for every AWS tool, or from the file of the parameter credentials")
	}
	if u.Opaque != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" || !tableName.MatchString(u.Host) || len(u.Host) < 3 || len(u.Host) > 255 {
		return nil, errors.New("want dynamodb://table?region=eu-west-1; the parameter endpoint names an engine other than AWS")
	}
	return p, checkPrefix(p.opts.Prefix)
}

func parseEndpoint(text string) (string, error) {
	_, err := hosturl.Endpoint(text)
	return text, err
}
