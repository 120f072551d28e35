package servers

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// An Etcd is an etcd server: a single server, or a member of an [EtcdCluster].
type Etcd struct {
	*Process
	TLS *Certificates // nil if the server speaks plain text to clients

	// Clients is a proxy in front of the server, for clients that use Addr.
	Clients *Proxy

	name  string
	peers *Proxy // the address for other members
	port  int    // for clients, behind the proxy
	bus   int    // for members, behind the proxy
}

// StartEtcd starts a single server. Options are extra arguments, such as
// "--auth-token-ttl=1". The server keeps its data on disk, and waits for the disk.
func StartEtcd(tb TB, options ...string) *Etcd {
	tb.Helper()
	e := prepareEtcd(tb)
	e.start(tb, e.name+"="+e.peerURL(), options)
	mustAwait(tb, "etcd", func() error { _, err := e.leader(); return err })
	return e
}

// StartEtcdTLS is StartEtcd for a server that speaks TLS only. The server asks clients for
// no certificate, unless the option "--client-cert-auth" is given.
func StartEtcdTLS(tb TB, options ...string) *Etcd {
	tb.Helper()
	certificates, err := newCertificates(tb.TempDir())
	if err != nil {
		tb.Fatalf("write certificates: %v", err)
	}
	e := prepareEtcd(tb)
	e.TLS = certificates
	e.start(tb, e.name+"="+e.peerURL(), slices.Concat(options, []string{
		"--cert-file=" + certificates.Cert, "--key-file=" + certificates.Key, "--trusted-ca-file=" + certificates.CA,
	}))
	mustAwait(tb, "etcd", func() error { _, err := e.leader(); return err })
	return e
}

// prepareEtcd gives a server a name and addresses.
func prepareEtcd(tb TB) *Etcd {
	tb.Helper()
	nowhere := address(1)
	return &Etcd{name: strings.ToLower(rand.Text()), Clients: StartProxy(tb, nowhere), peers: StartProxy(tb, nowhere)}
}

func (e *Etcd) start(tb TB, members string, options []string) {
	tb.Helper()
	e.Process = start(tb, program{
		name: "etcd",
		path: etcdBinary(tb),
		setup: func(tb TB, dir string) ([]string, error) {
			return e.configure(tb, dir, members, options)
		},
		ready: func(int) error { return e.ready() },
	})
}

// etcdBinary returns $HOLDFAST_ETCD, else the installed program.
func etcdBinary(tb TB) string {
	tb.Helper()
	if named := os.Getenv("HOLDFAST_ETCD"); named != "" {
		return chosen(tb, "HOLDFAST_ETCD", named)
	}
	return Installed(tb, "etcd-server", "etcd")
}

// configure picks the ports and returns the arguments.
func (e *Etcd) configure(tb TB, dir, members string, options []string) (args []string, err error) {
	if e.port, err = reserve(tb); err != nil {
		return nil, err
	}
	if e.bus, err = reserve(tb); err != nil {
		return nil, err
	}
	e.Clients.Redirect(address(e.port))
	e.peers.Redirect(address(e.bus))
	return slices.Concat([]string{
		"--name=" + e.name,
		"--data-dir=" + filepath.Join(dir, "data"),
		"--listen-client-urls=" + e.scheme() + address(e.port),
		"--advertise-client-urls=" + e.scheme() + e.Clients.Addr(),
		"--listen-peer-urls=http://" + address(e.bus),
		"--initial-advertise-peer-urls=" + e.peerURL(),
		"--initial-cluster=" + members,
		"--logger=zap",
		"--log-level=warn",
	}, options), nil
}

func (e *Etcd) scheme() string {
	if e.TLS != nil {
		return "https://"
	}
	return "http://"
}

func (e *Etcd) peerURL() string { return "http://" + e.peers.Addr() }

// ready returns nil once the server at the port of e answers with the address of e. The
// server serves clients only while a majority of members runs.
func (e *Etcd) ready() error {
	text, err := e.fetch(http.MethodGet, "http://"+address(e.bus)+"/members", "")
	if err == nil && !bytes.Contains(text, []byte(e.peerURL())) {
		err = errors.New("another server answers at its port")
	}
	return err
}

// Addr returns the host and port for clients, which lead to the proxy.
func (e *Etcd) Addr() string { return e.Clients.Addr() }

// Direct returns the host and port without the proxy, for clients that the proxy must not
// disturb.
func (e *Etcd) Direct() string { return address(e.port) }

// URL returns the address as etcd://host:port, or etcds:// with TLS.
func (e *Etcd) URL() string {
	if e.TLS != nil {
		return "etcds://" + e.Addr()
	}
	return "etcd://" + e.Addr()
}

// CutOff holds back, while on, all data in connections that clients and other members have
// opened to the server, in both directions. The network is thus cut in one direction: in
// connections that the server has opened, the server still hears other members.
func (e *Etcd) CutOff(on bool) {
	e.Clients.Blackhole(on)
	e.peers.Blackhole(on)
}

// Revision returns how many writes etcd has carried out since its data began.
func (e *Etcd) Revision() int {
	e.tb.Helper()
	n, err := strconv.Atoi(e.mustStatus().Header.Revision)
	if err != nil {
		e.tb.Fatalf("%s: %v", e.Addr(), err)
	}
	return n
}

// Metric returns a number from the metrics of the server.
func (e *Etcd) Metric(name string) float64 {
	e.tb.Helper()
	var text []byte
	mustAwait(e.tb, "the metrics of "+e.Addr(), func() (err error) {
		text, err = e.fetch(http.MethodGet, e.scheme()+address(e.port)+"/metrics", "")
		return err
	})
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				e.tb.Fatalf("%s: %v", e.Addr(), err)
			}
			return n
		}
	}
	e.tb.Fatalf("%s: there is no metric %s", e.Addr(), name)
	return 0
}

// leader returns the id of the leader, if this server is a member that follows a leader.
func (e *Etcd) leader() (id string, err error) {
	status, err := e.status()
	if err == nil && cmp.Or(status.Leader, "0") == "0" {
		err = errors.New("etcd has no leader")
	}
	return status.Leader, err
}

type etcdStatus struct {
	Header struct {
		MemberID string `json:"member_id"`
		Revision string `json:"revision"`
	} `json:"header"`
	Leader string `json:"leader"`
}

func (e *Etcd) status() (s etcdStatus, err error) {
	text, err := e.fetch(http.MethodPost, e.scheme()+address(e.port)+"/v3/maintenance/status", "{}")
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(text, &s)
}

// mustStatus retries until etcd answers.
func (e *Etcd) mustStatus() (s etcdStatus) {
	e.tb.Helper()
	mustAwait(e.tb, "the status of "+e.Addr(), func() (err error) {
		s, err = e.status()
		return err
	})
	return s
}

func (e *Etcd) fetch(method, url, body string) (text []byte, err error) {
	transport := &http.Transport{DisableKeepAlives: true}
	if e.TLS != nil {
		transport.TLSClientConfig = e.TLS.client
	}
	client := &http.Client{Transport: transport, Timeout: glance}
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(io.LimitReader(response.Body, 1<<24))
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, response.Status, bytes.TrimSpace(text))
	}
	return text, err
}
