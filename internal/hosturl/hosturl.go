// Package hosturl reads the common parts of the URLs of stores with several hosts: the
// hosts, and the files of TLS.
package hosturl

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
)

// Addresses returns the hosts of a URL, h1:2379,h2:2379. A host without a port gets the
// given port. Without hosts, the address is this machine.
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

// Remote reports whether a host, with or without a port, is not this machine.
func Remote(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	ip := net.ParseIP(name)
	return name != "" && name != "localhost" && !strings.HasPrefix(name, "/") && (ip == nil || !ip.IsLoopback())
}

// Plain warns of hosts to which a password or a token may travel unencrypted; no warning if all
// hosts are this machine. better names the remedy.
func Plain(hosts []string, better string) []string {
	var remote []string
	for _, host := range hosts {
		if Remote(host) && !slices.Contains(remote, host) {
			remote = append(remote, host)
		}
	}
	if len(remote) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("the connection to %s may be unencrypted: a listener there learns the credentials, and can break locks; %s",
		strings.Join(remote, ", "), better)}
}

// Unproven adds to an error which parameters would help, if a server did not prove its
// name.
func Unproven(err error, help string) error {
	if wrong := (*tls.CertificateVerificationError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("%w (%s)", err, help)
	}
	return err
}

// TLS returns the configuration for files in PEM: ca has the trusted authorities, in place
// of the system's; cert and key belong to the client. Every file may be "". name must be in
// the servers' certificates, "" for the name of the host.
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
