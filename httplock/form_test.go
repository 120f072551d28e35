package httplock_test

import (
	"bytes"
	"errors"
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

func post(contentType, body string) *http.Request { return postTo("/orders", contentType, body) }

func postTo(target, contentType, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
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
		// A form parsed by an earlier middleware is found as well.
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
	h := httplock.Locked(newLocks(t, memlock.New()), httplock.Form("token"), nil)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
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

// A form that a guard cannot read as the handler does is refused.
func TestFormsThatReadersReadDifferently(t *testing.T) {
	contentType, body := upload(t, [][2]string{{"token", "7"}})
	mixed := strings.Replace(contentType, "form-data", "mixed", 1)
	with := func(r *http.Request, change func(*http.Request)) *http.Request {
		change(r)
		return r
	}
	for name, c := range map[string]struct {
		r    *http.Request
		want string // the value of the field; "" if the request is refused
	}{
		"malformed parameter":            {post(urlencoded+`; charset="`, "token=7"), ""},
		"parameter without a value":      {post(urlencoded+"; charset", "token=7"), ""},
		"parameter twice":                {post(urlencoded+"; charset=a; charset=b", "token=7"), ""},
		"malformed parameter, multipart": {post(contentType+`; charset="`, body), ""},
		"no media type":                  {post("; charset=utf-8", "token=7"), ""},
		"two types":                      {post(urlencoded+", text/plain", "token=7"), ""},
		"two headers":                    {with(post("text/plain", "token=7"), func(r *http.Request) { r.Header.Add("Content-Type", urlencoded) }), ""},
		"the same header twice":          {with(post(urlencoded, "token=7"), func(r *http.Request) { r.Header.Add("Content-Type", urlencoded) }), ""},
		"compressed":                     {with(post(urlencoded, "\x1f\x8b\x08"), func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }), ""},
		"empty boundary":                 {post(`multipart/form-data; boundary=""`, body), ""},
		"another boundary":               {post("multipart/form-data; boundary=other", body), ""},
		"semicolon in the body":          {post(urlencoded, "a=1;token=7"), ""},
		"semicolon in the query":         {postTo("/orders?a=1;token=7", urlencoded, "token=7"), ""},
		"two values":                     {post(urlencoded, "token=7&token=8"), ""},
		"a value and none":               {post(urlencoded, "token=&token=7"), ""},
		"another value in the query":     {postTo("/orders?token=8", urlencoded, "token=7"), ""},
		"another in that of multipart":   {postTo("/orders?token=8", contentType, body), ""},
		"none in the query":              {postTo("/orders?token=", urlencoded, "token=7"), ""},
		"read by MultipartReader":        {with(post(contentType, body), func(r *http.Request) { r.MultipartReader() }), ""},

		"upper case":                {post("APPLICATION/X-WWW-Form-URLENCODED; Charset=UTF-8", "token=7"), "7"},
		"trailing semicolon":        {post(urlencoded+";", "token=7"), "7"},
		"identity":                  {with(post(urlencoded, "token=7"), func(r *http.Request) { r.Header.Set("Content-Encoding", "identity") }), "7"},
		"multipart/mixed":           {post(mixed, body), "7"},
		"one value twice":           {postTo("/orders?token=7", urlencoded, "token=7&token=7"), "7"},
		"in the query only":         {postTo("/orders?token=7", urlencoded, "a=1"), "7"},
		"in the query, other body":  {postTo("/orders?token=7", "application/json", "{}"), "7"},
		"in the query, without one": {with(postTo("/orders?token=7", "", ""), func(r *http.Request) { r.Body = http.NoBody }), "7"},
		"in the query of a GET":     {with(postTo("/orders?token=7", "", ""), func(r *http.Request) { r.Method, r.Body = http.MethodGet, nil }), "7"},
		"PUT":                       {with(post(urlencoded, "token=7"), func(r *http.Request) { r.Method = http.MethodPut }), "7"},
		"PATCH":                     {with(post(urlencoded, "token=7"), func(r *http.Request) { r.Method = http.MethodPatch }), "7"},
		"DELETE":                    {with(post(urlencoded, "token=7"), func(r *http.Request) { r.Method = http.MethodDelete }), "7"},
		"DELETE, parsed before":     {with(post(urlencoded, "token=7"), func(r *http.Request) { r.Method = http.MethodDelete; r.ParseForm() }), "7"},
		"limited":                   {with(post(urlencoded, "token=7"), func(r *http.Request) { r.Body = http.MaxBytesReader(nil, r.Body, 7) }), "7"},
	} {
		key, err := httplock.Form("token")(c.r)
		var problem *httplock.Problem
		switch {
		case c.want != "" && (err != nil || key != "form/token/"+c.want):
			t.Errorf("%s: %q, %v; want %s", name, key, err, c.want)
		case c.want == "" && name == "read by MultipartReader": // a mistake of the server
			if err == nil || errors.As(err, &problem) {
				t.Errorf("%s: %q, %v", name, key, err)
			}
		case c.want == "" && (!errors.As(err, &problem) || problem.Status != http.StatusBadRequest):
			t.Errorf("%s: %q, %v; want 400", name, key, err)
		}
	}
}

// For every request of a client: if the request passes, the handler finds the value that
// the guard has found, or none, however the handler reads the form.
func FuzzForm(f *testing.F) {
	const multipart = "--b\r\nContent-Disposition: form-data; name=\"token\"\r\n\r\n7\r\n--b--\r\n"
	f.Add("POST", "token=7", urlencoded+`; charset="`, "token=8")
	f.Add("PUT", "a=%zz&token=7", urlencoded, "token=7")
	f.Add("DELETE", "token=8", urlencoded, "token=7")
	f.Add("PATCH", "", "multipart/form-data; boundary=b", multipart)
	f.Add("POST", "token=8", "multipart/mixed; boundary=b", multipart)
	f.Add("POST", "", "multipart/form-data; boundary*0=b", multipart+multipart)
	f.Fuzz(func(t *testing.T, method, query, contentType, body string) {
		request := func() *http.Request {
			r := post(contentType, body)
			r.Method, r.URL.RawQuery = method, query
			return r
		}
		r := request()
		key, err := httplock.Form("token")(r)
		if err != nil {
			return
		}
		found := map[string]string{
			"URL":              r.URL.Query().Get("token"),
			"FormValue before": request().FormValue("token"),
			"PostFormValue":    r.PostFormValue("token"),
			"FormValue":        r.FormValue("token"),
			"MultipartReader":  "",
		}
		again := request()
		if _, err := httplock.Form("token")(again); err != nil {
			t.Fatal(err)
		}
		if reader, err := again.MultipartReader(); err == nil {
			found["MultipartReader"] = firstPart(reader, "token")
		}
		for reader, value := range found {
			if value != "" && key != "form/token/"+value {
				t.Errorf("%s has %q, the guard %q", reader, value, key)
			}
		}
	})
}

// firstPart returns the first value of a field as a handler reads it part by part.
func firstPart(r *multipart.Reader, field string) string {
	for {
		part, err := r.NextPart()
		if err != nil {
			return ""
		}
		if part.FormName() == field && part.FileName() == "" {
			value, _ := io.ReadAll(part)
			return string(value)
		}
	}
}
