package httplock

import (
	"bytes"
	"maps"
	"net/http"
	"time"
)

// A recorder holds a response back until it is remembered. A response beyond the limit is
// passed on directly. The recorder neither flushes nor hijacks, and has no Unwrap, so no
// caller can flush or hijack through Unwrap.
type recorder struct {
	w       http.ResponseWriter
	limit   int
	header  http.Header // the handler's
	status  int         // 0 until known
	sent    http.Header // a copy of header, made when the status was set
	body    bytes.Buffer
	passing bool // the body has grown beyond the limit
}

func newRecorder(w http.ResponseWriter, limit int) *recorder {
	return &recorder{w: w, limit: limit, header: w.Header().Clone()}
}

func (rec *recorder) Header() http.Header { return rec.header }

func (rec *recorder) WriteHeader(status int) {
	if rec.status != 0 {
		return
	}
	if status >= 100 && status < 200 && status != http.StatusSwitchingProtocols {
		maps.Copy(rec.w.Header(), rec.header)
		rec.w.WriteHeader(status) // a hint, before the response
		return
	}
	rec.status, rec.sent = status, rec.header.Clone()
}

func (rec *recorder) Write(p []byte) (int, error) {
	rec.WriteHeader(http.StatusOK)
	if !rec.passing && rec.body.Len()+len(p) > rec.limit {
		rec.send()
		rec.passing = true
	}
	if rec.passing {
		return rec.w.Write(p)
	}
	return rec.body.Write(p)
}

// end completes the response of a handler that has returned.
func (rec *recorder) end() { rec.WriteHeader(http.StatusOK) }

// send passes on the response that was held back.
func (rec *recorder) send() {
	if rec.passing {
		return
	}
	clear(rec.w.Header())
	maps.Copy(rec.w.Header(), rec.sent)
	rec.w.WriteHeader(rec.status)
	if rec.body.Len() > 0 {
		rec.w.Write(rec.body.Bytes())
	}
}

// The methods below are for http.ResponseController.

func (rec *recorder) SetReadDeadline(t time.Time) error {
	return http.NewResponseController(rec.w).SetReadDeadline(t)
}

func (rec *recorder) SetWriteDeadline(t time.Time) error {
	return http.NewResponseController(rec.w).SetWriteDeadline(t)
}

func (rec *recorder) EnableFullDuplex() error {
	return http.NewResponseController(rec.w).EnableFullDuplex()
}
