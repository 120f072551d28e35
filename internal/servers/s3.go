package servers

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// versityVersion is the release that scripts/servers installs.
const versityVersion = "v1.8.0"

// S3Bucket is the bucket of an [S3].
const S3Bucket = "locks"

// An S3 is a server of the S3 protocol with a bucket: Versity's gateway over a folder. Data
// survive a kill. The folder must allow extended attributes: beside a "sidecar" folder, the
// gateway may serve the ETag of a write with the data of the write before.
type S3 struct {
	*Process
	TLS *Certificates // nil if the server speaks plain HTTP

	port           int
	access, secret string
	data           string // folder of the buckets
	credentials    string // file with the keys, as AWS tools read them
}

// StartS3 starts a server. Options are arguments of versitygw before the backend.
func StartS3(tb TB, options ...string) *S3 {
	tb.Helper()
	return new(S3).start(tb, options)
}

// StartS3TLS is StartS3 for a server that speaks HTTPS only.
func StartS3TLS(tb TB, options ...string) *S3 {
	tb.Helper()
	s := &S3{TLS: newCertificates(tb)}
	return s.start(tb, append([]string{"--cert", s.TLS.Cert, "--key", s.TLS.Key}, options...))
}

func (s *S3) start(tb TB, options []string) *S3 {
	tb.Helper()
	s.access, s.secret = rand.Text(), rand.Text()
	s.Process = start(tb, program{
		name:  "versitygw",
		path:  versitygw(tb),
		setup: func(tb TB, dir string) ([]string, error) { return s.arguments(tb, dir, options) },
		ready: func(int) error { return s.ready() },
	})
	return s
}

func versitygw(tb TB) string {
	return chosen(tb, "HOLDFAST_VERSITYGW", "none, but run go install github.com/versity/versitygw/cmd/versitygw@"+versityVersion, "versitygw")
}

// AddUser makes a user without rights, and returns the URL of the bucket for the user. The server
// must have the option --iam-dir. A policy of the bucket gives the user rights.
func (s *S3) AddUser(name string) (url string) {
	s.tb.Helper()
	secret := rand.Text()
	text, err := exec.Command(versitygw(s.tb), "admin", "--access", s.access, "--secret", s.secret,
		"--endpoint-url", s.TLS.scheme()+s.Addr(), "create-user", "--access", name, "--secret", secret, "--role", "user").CombinedOutput()
	if err != nil {
		s.tb.Fatalf("make the user %s: %v: %s", name, err, text)
	}
	file := filepath.Join(s.dir, "credentials-of-"+name)
	if err := os.WriteFile(file, profile(name, secret), 0o600); err != nil {
		s.tb.Fatalf("%v", err)
	}
	return s.as(s.Addr(), file)
}

// profile is a file of credentials.
func profile(access, secret string) []byte {
	return fmt.Appendf(nil, "[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", access, secret)
}

const healthy = "/health"

// arguments makes the bucket, picks a port and returns the arguments.
func (s *S3) arguments(tb TB, dir string, options []string) ([]string, error) {
	s.port = reserve(tb)
	s.data, s.credentials = filepath.Join(dir, "data"), filepath.Join(dir, "credentials")
	if err := os.MkdirAll(filepath.Join(s.data, S3Bucket), 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(s.credentials, profile(s.access, s.secret), 0o600); err != nil {
		return nil, err
	}
	args := []string{"--port", s.Addr(), "--access", s.access, "--secret", s.secret, "--health", healthy, "--keep-alive", "--quiet", "--access-log", filepath.Join(dir, accessLog)}
	return append(append(args, options...), "posix", s.data), nil
}

// ready returns nil once the server serves the bucket. Only this server knows the keys.
func (s *S3) ready() error {
	answer, err := s.TLS.caller(glance).Get(s.TLS.scheme() + s.Addr() + healthy)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, text)
	}
	return err
}

// Addr returns the host and port.
func (s *S3) Addr() string { return address(s.port) }

// URL returns the bucket as s3://locks, with the endpoint and the file of the keys.
func (s *S3) URL() string { return s.Through(s.Addr()) }

// Through returns the URL of the bucket for clients that reach the server at another address.
func (s *S3) Through(addr string) string { return s.as(addr, s.credentials) }

func (s *S3) as(addr, credentials string) string {
	u := url.URL{Scheme: "s3", Host: S3Bucket}
	u.RawQuery = url.Values{"endpoint": {s.TLS.scheme() + addr}, "region": {"us-east-1"}, "credentials": {credentials}}.Encode()
	return u.String()
}

const accessLog = "access.log"

// Requests returns the number of requests that the server has answered.
func (s *S3) Requests() int {
	s.tb.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, accessLog))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		s.tb.Fatalf("%v", err)
	}
	return bytes.Count(text, []byte("\n"))
}

// Version returns the name and the version of the server.
func (s *S3) Version() string {
	return "versitygw " + strings.TrimPrefix(versityVersion, "v")
}
