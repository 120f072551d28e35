package servers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-go/holdfast/internal/must"
)

// Certificates are files in PEM: an authority that no other program trusts, and a
// certificate by this authority for the loopback address. Servers and clients prove their
// identity with the certificate.
type Certificates struct {
	CA, Cert, Key string

	client *tls.Config
}

// Config returns a configuration for clients that present the certificate.
func (c *Certificates) Config() *tls.Config { return c.client.Clone() }

// scheme begins the URLs of a server. A server without certificates speaks plain HTTP.
func (c *Certificates) scheme() string {
	if c == nil {
		return "http://"
	}
	return "https://"
}

// caller returns a client of a server, with or without certificates, for requests that take at most
// limit. The client keeps no connection.
func (c *Certificates) caller(limit time.Duration) *http.Client {
	transport := &http.Transport{DisableKeepAlives: true}
	if c != nil {
		transport.TLSClientConfig = c.Config()
	}
	return &http.Client{Transport: transport, Timeout: limit}
}

// own gives the files to the account of a server, which may refuse those of others.
func (c *Certificates) own(tb TB, a *account) {
	tb.Helper()
	for _, file := range []string{c.CA, c.Cert, c.Key} {
		if err := a.own(file); err != nil {
			tb.Fatalf("certificates: %v", err)
		}
	}
}

// newCertificates writes certificates that outlast any test.
func newCertificates(tb TB) *Certificates {
	tb.Helper()
	authority := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "Holdfast tests"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageCertSign,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	member := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "localhost"},
		NotBefore:    authority.NotBefore,
		NotAfter:     authority.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.ParseIP(loopback)},
	}
	dir := tb.TempDir()
	c := &Certificates{
		CA:   filepath.Join(dir, "ca.pem"),
		Cert: filepath.Join(dir, "cert.pem"),
		Key:  filepath.Join(dir, "key.pem"),
	}
	if err := c.write(authority, member); err != nil {
		tb.Fatalf("write certificates: %v", err)
	}
	return c
}

func (c *Certificates) write(authority, member *x509.Certificate) error {
	signer := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	root := must.Get(x509.CreateCertificate(rand.Reader, authority, authority, signer.Public(), signer))
	leaf := must.Get(x509.CreateCertificate(rand.Reader, member, authority, key.Public(), signer))
	secret := must.Get(x509.MarshalPKCS8PrivateKey(key))
	for _, file := range []struct {
		name, kind string
		der        []byte
	}{{c.CA, "CERTIFICATE", root}, {c.Cert, "CERTIFICATE", leaf}, {c.Key, "PRIVATE KEY", secret}} {
		text := pem.EncodeToMemory(&pem.Block{Type: file.kind, Bytes: file.der})
		if err := os.WriteFile(file.name, text, 0o600); err != nil {
			return err
		}
	}
	c.client = &tls.Config{
		RootCAs:      x509.NewCertPool(),
		Certificates: []tls.Certificate{{Certificate: [][]byte{leaf}, PrivateKey: key}},
	}
	c.client.RootCAs.AddCert(must.Get(x509.ParseCertificate(root)))
	return nil
}
