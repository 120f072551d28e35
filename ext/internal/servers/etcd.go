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

// An Etcd is an etcd server: one alone, or a member of an [EtcdCluster].
type Etcd struct {
	*Process
	TLS *Certificates // nil if it speaks plain text to clients

	// Clients stands before the server, for those clients that reach it by Addr.
	Clients *Proxy

	name  string
	peers *Proxy // the address that other members know
	port  int    // for clients, behind the proxy
	bus   int    // for members, behind the proxy
}

// StartEtcd starts a server that is alone. Options are further arguments, such
// as "--auth-token-ttl=1". It keeps its data on disk, and waits for that.
func StartEtcd(tb TB, options ...string) *Etcd {
	tb.Helper()
	e := prepareEtcd(tb)
	e.start(tb, e.name+"="+e.peerURL(), options)
	mustAwait(tb, "etcd", func() error { _, err := e.leader(); return err })
	return e
}

// StartEtcdTLS is StartEtcd for a server that speaks TLS only. It asks clients
// for no certificate, unless the option "--client-cert-auth" says so.
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

// prepareEtcd gives a server its name and its addresses.
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

// etcdBinary returns what $HOLDFAST_ETCD names, else what is installed.
func etcdBinary(tb TB) string {
	tb.Helper()
	if named := os.Getenv("HOLDFAST_ETCD"); named != "" {
		return chosen(tb, "HOLDFAST_ETCD", named)
	}
	return installed(tb, "etcd-server", "etcd")
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

// ready returns nil once the server knows who it is. Clients are served only
// when a majority of members runs.
func (e *Etcd) ready() error {
	text, err := e.fetch(http.MethodGet, "http://"+address(e.bus)+"/members", "")
	if err == nil && !bytes.Contains(text, []byte(e.peerURL())) {
		err = errors.New("another server answers at its port")
	}
	return err
}

// Addr returns the host and port for clients, which is that of the proxy.
func (e *Etcd) Addr() string { return e.Clients.Addr() }

// Direct returns the host and port without the proxy, for those whom it shall not
// harm.
func (e *Etcd) Direct() string { return address(e.port) }

// URL returns the address as etcd://host:port, or etcds:// with TLS.
func (e *Etcd) URL() string {
	if e.TLS != nil {
		return "etcds://" + e.Addr()
	}
	return "etcd://" + e.Addr()
}

// CutOff holds, while on, all that the server says and all that it is told in
// connections from others, as a network does that is cut in one direction: it
// still hears other members where it has called them.
func (e *Etcd) CutOff(on bool) {
	e.Clients.Blackhole(on)
	e.peers.Blackhole(on)
}

// Revision returns how many writes etcd has carried out since its data began.
func (e *Etcd) Revision() int {
	e.tb.Helper()
	s, err := e.status()
	if err != nil {
		e.tb.Fatalf("%s: %v", e.Addr(), err)
	}
	n, err := strconv.Atoi(s.Header.Revision)
	if err != nil {
		e.tb.Fatalf("%s: %v", e.Addr(), err)
	}
	return n
}

// Metric returns a number from the metrics of the server.
func (e *Etcd) Metric(name string) float64 {
	e.tb.Helper()
	text, err := e.fetch(http.MethodGet, e.scheme()+address(e.port)+"/metrics", "")
	if err != nil {
		e.tb.Fatalf("%s: %v", e.Addr(), err)
	}
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

// leader returns the id of the member that leads, if this is a member that
// follows one.
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
