package httplock

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
)

// MaxForm is how many bytes of a body [Form] reads to find its field.
const MaxForm = 1 << 20

// Form is the key in a field of a form, such as a hidden token that the page was
// served with. It reads the body, which the handler can read again from its
// beginning: of an urlencoded form all of it, of a multipart form as much as
// comes before the field, which therefore should stand first. A field that is
// not found within [MaxForm] bytes is answered with 413, a form that cannot be
// read with 400. Requests without such a form, or without the field, have no
// key: [Required] refuses them.
func Form(field string) KeyFunc {
	kind := "form/" + field + "/"
	return func(r *http.Request) (string, error) {
		value, err := formValue(r, field)
		return named(kind, value), err
	}
}

func formValue(r *http.Request, field string) (string, error) {
	contentType, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || r.Body == nil {
		return "", nil // no form
	}
	switch contentType {
	case "application/x-www-form-urlencoded":
		if r.PostForm != nil { // an earlier middleware has read the body
			return r.PostForm.Get(field), nil
		}
		return urlencodedValue(r, field)
	case "multipart/form-data":
		if r.MultipartForm != nil {
			return r.PostForm.Get(field), nil
		}
		return multipartValue(r, field, params["boundary"])
	}
	return "", nil
}

func urlencodedValue(r *http.Request, field string) (string, error) {
	body, err := readBody(r, MaxForm)
	if err != nil {
		return "", err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "", badRequest("The form in the body is malformed.")
	}
	return form.Get(field), nil
}

// readBody reads the body, which can then be read again. It returns a Problem.
func readBody(r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err != nil {
		return nil, unreadable(err)
	}
	if int64(len(body)) > limit {
		return nil, tooLarge(limit)
	}
	r.Body = replay{bytes.NewReader(body), r.Body}
	return body, nil
}

// A replay is a body of which something has been read already.
type replay struct {
	io.Reader
	io.Closer
}

func multipartValue(r *http.Request, field, boundary string) (string, error) {
	if boundary == "" {
		return "", badRequest("The multipart form in the body has no boundary.")
	}
	var seen bytes.Buffer
	limited := &io.LimitedReader{R: r.Body, N: MaxForm}
	parts := multipart.NewReader(io.TeeReader(limited, &seen), boundary)
	value, err := findPart(parts, field)
	r.Body = replay{io.MultiReader(&seen, r.Body), r.Body}
	switch {
	case err == nil:
		return value, nil
	case limited.N <= 0:
		return "", tooLarge(MaxForm)
	}
	return "", unreadable(err)
}

// findPart returns the value of the field, "" if there is none.
func findPart(parts *multipart.Reader, field string) (string, error) {
	for {
		part, err := parts.NextPart()
		if err == io.EOF {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		if part.FormName() == field && part.FileName() == "" {
			value, err := io.ReadAll(part)
			return string(value), err
		}
	}
}

func tooLarge(limit int64) *Problem {
	return &Problem{
		Status: http.StatusRequestEntityTooLarge,
		Detail: fmt.Sprintf("The body of this request is larger than the %d bytes that are read here.", limit),
	}
}

// unreadable is the Problem of a body that ended early, was limited by another
// middleware, or is no form.
func unreadable(err error) *Problem {
	p := ProblemOf(err)
	if p.Status != http.StatusRequestEntityTooLarge {
		p = badRequest("The body of this request could not be read.")
	}
	p.Err = err
	return p
}
