package httplock

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/holdfast-go/holdfast/once"
)

// A reply is the remembered form of a response: a line of JSON, followed by the body.
type reply struct {
	Status  int         `json:"status"`
	Header  http.Header `json:"header,omitempty"`
	Partial bool        `json:"partial,omitempty"` // the rest was too large
	body    []byte
}

func keep(rec *recorder, headers []string) reply {
	if rec.passing {
		return reply{Status: rec.status, Partial: true}
	}
	p := reply{Status: rec.status, Header: make(http.Header), body: rec.body.Bytes()}
	for _, name := range headers {
		if values := rec.sent.Values(name); len(values) > 0 {
			p.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	return p
}

func (p reply) encode() []byte {
	head, _ := json.Marshal(p) // cannot fail
	if len(head)+1+len(p.body) > once.MaxResult {
		return reply{Status: p.Status, Partial: true}.encode()
	}
	return append(append(head, '\n'), p.body...)
}

func decode(kept []byte) (p reply, err error) {
	head, body, found := bytes.Cut(kept, []byte("\n"))
	if err := json.Unmarshal(head, &p); err != nil || !found {
		return p, fmt.Errorf("the record %.40q is no response of httplock", kept)
	}
	p.body = body
	return p, nil
}

func (p reply) send(w http.ResponseWriter) {
	for name, values := range p.Header {
		w.Header()[name] = values
	}
	w.Header().Set(ReplayedHeader, "true")
	w.WriteHeader(p.Status)
	if len(p.body) > 0 {
		w.Write(p.body)
	}
}
