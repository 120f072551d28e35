package conditional

import (
	"io"
	"net/http"
)

// A Client sends the requests of an SDK.
type Client interface {
	Do(*http.Request) (*http.Response, error)
}

// KeepConnection returns a client that sends a body through Read alone. The AWS SDK closes the body
// as soon as an answer begins, while net/http may still look for the end of the body. A closed body
// of the SDK returns io.EOF from WriteTo. net/http takes that for a failure, and closes the
// connection before the answer is read.
func KeepConnection(c Client) Client { return plainBody{c} }

type plainBody struct{ client Client }

func (p plainBody) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return p.client.Do(r)
}
