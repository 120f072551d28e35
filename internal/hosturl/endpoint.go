package hosturl

import (
	"errors"
	"net/url"
)

// Endpoint reads the URL of a service that is reached by HTTP: http or https, a host, and perhaps a
// path.
func Endpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the endpoint is no URL such as https://storage.example.com")
	}
	return u, nil
}
