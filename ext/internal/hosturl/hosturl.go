// Package hosturl reads what the URLs of stores with several hosts have in
// common: the hosts, and the files of TLS.
package hosturl

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
)

// Addresses are the hosts of a URL, h1:2379,h2:2379, each with this port if it
// names none. No hosts are this machine.
func Addresses(hosts, port string) ([]string, error) {
	if hosts == "" {
		return []string{net.JoinHostPort("127.0.0.1", port)}, nil
	}
	var all []string
	for host := range strings.SplitSeq(hosts, ",") {
		if host == "" {
			return nil, fmt.Errorf("hosts %q: one of them is empty", hosts)
		}
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), port)
		}
		all = append(all, host)
	}
	return all, nil
}

// TLS is the configuration that files in PEM ask for: ca has those who are
// trusted instead of the system's, cert and key are the client's own. Each may be
// "". name is what the servers' certificates must say, "" for the host's own name.
func TLS(ca, cert, key, name string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: name}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate in PEM", ca)
		}
	}
	if (cert == "") != (key == "") {
		return nil, errors.New("cert and key go together")
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
