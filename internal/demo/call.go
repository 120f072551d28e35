package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
)

// inside keeps connections open: a server has up to maxBuyers open at a time.
var inside = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: maxBuyers}}

// call sends a request with body in JSON. A nil body is not sent. The caller closes the
// body of the reply.
func call(ctx context.Context, method, url string, body any) (*http.Response, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, content)
	if err != nil {
		return nil, err
	}
	return inside.Do(r)
}
