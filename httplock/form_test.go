package httplock_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/httplock"
	"github.com/holdfast-go/holdfast/memlock"
)

const urlencoded = "application/x-www-form-urlencoded"

func post(contentType, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	return r
}

// upload makes a multipart form of fields, and of files where a name begins so.
func upload(t *testing.T, fields [][2]string) (contentType, body string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, f := range fields {
		var part io.Writer
		var err error
		if name, ok := strings.CutPrefix(f[0], "file "); ok {
			part, err = w.CreateFormFile(name, "photo")
		} else {
			part, err = w.CreateFormField(f[0])
		}
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(part, f[1])
	}
	w.Close()
	return w.FormDataContentType(), b.String()
}

func TestForm(t *testing.T) {
	big := strings.Repeat("x", 3*httplock.MaxForm)
	key := httplock.Form("token")
	type form struct{ contentType, body, want string }
	forms := []form{
		{urlencoded, "a=1&token=7f%2F3a", "form/token/7f/3a"},
		{urlencoded, "a=1", ""},
		{"application/json", `{"token":"7f"}`, ""},
		{"", "token=7f", ""},
	}
	for want, fields := range map[string][][2]string{
		"form/token/third":  {{"file token", "a file is no token"}, {"token", "third"}},
		"form/token/first":  {{"token", "first"}, {"file photo", big}},
		"form/token/second": {{"a", "1"}, {"file photo", "small"}, {"token", "second"}},
		"":                  {{"a", "1"}, {"file photo", "small"}},
	} {
		contentType, body := upload(t, fields)
		forms = append(forms, form{contentType, body, want})
	}
	for _, f := range forms {
		r := post(f.contentType, f.body)
		got, err := key(r)
		if got != f.want || err != nil {
			t.Errorf("%s %.40q: %q, %v; want %q", f.contentType, f.body, got, err, f.want)
		}
		if body, err := io.ReadAll(r.Body); string(body) != f.body || err != nil {
			t.Errorf("%s %.40q: the handler reads %d bytes, %v; want %d", f.contentType, f.body, len(body), err, len(f.body))
		}
		if err := r.Body.Close(); err != nil {
			t.Error(err)
		}
		// What an earlier middleware has parsed is found as well.
		r = post(f.contentType, f.body)
		r.ParseMultipartForm(1 << 20)
		if got, err := key(r); got != f.want || err != nil {
			t.Errorf("parsed before: %s %.40q: %q, %v; want %q", f.contentType, f.body, got, err, f.want)
		}
	}
	contentType, body := upload(t, [][2]string{{"token", "7"}})
	r := post(contentType, body)
	r.ParseForm() // reads nothing of a multipart form
	if got, err := key(r); got != "form/token/7" || err != nil {
		t.Errorf("after ParseForm: %q, %v", got, err)
	}
}

func TestBadForms(t *testing.T) {
	big := strings.Repeat("x", httplock.MaxForm)
	late, lateBody := upload(t, [][2]string{{"file photo", big}, {"token", "7"}})
	short, shortBody := upload(t, [][2]string{{"token", "7"}})
	limited := post(urlencoded, "token=7&more="+big[:100])
	limited.Body = http.MaxBytesReader(nil, limited.Body, 10)
	streamed := post(urlencoded, "token=7&more="+big)
	streamed.ContentLength = -1
	h := httplock.Middleware(newLocks(t, memlock.New()), httplock.Form("token"), nil)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the handler was called")
	}))
	for _, c := range []struct {
		r      *http.Request
		status int
		detail string
	}{
		{post(urlencoded, "token=7&more="+big), http.StatusRequestEntityTooLarge, "larger than the 1048576 bytes"},
		{streamed, http.StatusRequestEntityTooLarge, "larger than the 1048576 bytes"},
		{post(late, lateBody), http.StatusRequestEntityTooLarge, "larger than the 1048576 bytes"},
		{limited, http.StatusRequestEntityTooLarge, "larger than the 10 bytes"},
		{post(urlencoded, "token=%zz"), http.StatusBadRequest, "malformed"},
		{post("multipart/form-data", shortBody), http.StatusBadRequest, "no boundary"},
		{post(short, shortBody[:len(shortBody)-20]), http.StatusBadRequest, "could not be read"},
	} {
		wantProblem(t, serve(h, c.r), c.status, c.detail)
	}
}
