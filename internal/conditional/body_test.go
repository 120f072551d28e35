package conditional_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/conditional"
)

// sdkBody is a body of the AWS SDK. Its end comes only when it is closed.
type sdkBody struct {
	io.Reader
	once   sync.Once
	closed chan struct{}
}

func (b *sdkBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		<-b.closed
	}
	return n, err
}

func (b *sdkBody) WriteTo(io.Writer) (int64, error) {
	<-b.closed
	return 0, io.EOF
}

func (b *sdkBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

// A body that the SDK closes when the answer begins keeps the connection.
func TestKeepConnection(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.CopyN(io.Discard, r.Body, r.ContentLength); err != nil {
			t.Error(err)
		}
		io.WriteString(w, "done")
	}))
	defer server.Close()
	client := conditional.KeepConnection(server.Client())
	// net/http closes a connection if its own goroutine is late to report the end of the request.
	reused := false
	for tries := 0; tries < 10 && !reused; tries++ {
		trace := &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = c.Reused }}
		body := &sdkBody{Reader: strings.NewReader("record"), closed: make(chan struct{})}
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodPut, server.URL, body)
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = int64(len("record"))
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body.Close()
		if text, err := io.ReadAll(answer.Body); string(text) != "done" {
			t.Errorf("answer %q, %v", text, err)
		}
		answer.Body.Close()
	}
	if !reused {
		t.Error("no request used the connection of the request before")
	}
}
