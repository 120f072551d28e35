package certlock

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/servers"
	"github.com/holdfast-go/holdfast/internal/workers"
	_ "github.com/holdfast-go/holdfast/redislock"
)

func TestMain(m *testing.M) {
	workers.Main(func(args []string) error { return obtain(args[0], args[1]) })
	os.Exit(m.Run())
}

const (
	domain    = "www.example.com"
	workerTTL = 20 * time.Second // which a busy machine can keep
)

var options = &holdfast.Options{TTL: workerTTL, Prefix: "certs/"}

// A patient storage repeats a Lock that Redis did not answer in time.
type patient struct{ *Storage }

func (p patient) Lock(ctx context.Context, name string) error {
	err := p.Storage.Lock(ctx, name)
	for errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
		err = p.Storage.Lock(ctx, name)
	}
	return err
}

// obtain lets certmagic obtain a certificate, and says its serial number.
func obtain(url, dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience) // until the last worker has the certificate
	defer cancel()
	locks, err := servers.Answer(ctx, func(ctx context.Context) (*holdfast.Locker, error) { return holdfast.Open(ctx, url, options) })
	if err != nil {
		return err
	}
	var config *certmagic.Config
	cache := certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return config, nil },
		Logger:           zap.NewNop(),
	})
	defer cache.Stop()
	config = certmagic.New(cache, certmagic.Config{
		Storage: patient{New(&certmagic.FileStorage{Path: dir}, locks)},
		Issuers: []certmagic.Issuer{issuer{}},
		OCSP:    certmagic.OCSPConfig{DisableStapling: true},
		Logger:  zap.NewNop(),
	})
	if err := config.ManageSync(ctx, []string{domain}); err != nil {
		return err
	}
	cert, err := config.CacheManagedCertificate(ctx, domain)
	if err != nil {
		return err
	}
	fmt.Println("serial", cert.Leaf.SerialNumber)
	return locks.Close()
}

// An issuer says that it was asked, and signs when it is told to.
type issuer struct{}

func (issuer) IssuerKey() string { return "test" }

func (issuer) Issue(_ context.Context, request *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	fmt.Println("issuing")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: domain},
		DNSNames:     request.DNSNames,
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(90 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, request.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

// patience bounds a wait for a worker, to show a hang. A takeover waits for a TTL.
const patience = workerTTL + time.Minute

// A line is what a worker says.
type line struct {
	by   *workers.Worker
	text string
}

// hire starts workers and returns all they say until they have ended.
func hire(t *testing.T, n int, args ...string) <-chan line {
	t.Helper()
	lines := make(chan line)
	var all sync.WaitGroup
	for range n {
		w := workers.Start(t, args...)
		all.Go(func() {
			for scanner := bufio.NewScanner(w.Out); scanner.Scan(); {
				lines <- line{w, scanner.Text()}
			}
			if err := w.Wait(); err != nil {
				lines <- line{w, err.Error()}
			}
		})
	}
	go func() {
		all.Wait()
		close(lines)
	}()
	return lines
}

// Four processes with one storage want the same certificate. One of them asks the
// issuer and is killed, then another does, and all that live have what it got.
func TestOneIssues(t *testing.T) {
	t.Parallel()
	url := "redis://" + servers.StartRedis(t).Addr()
	locks := servers.Insist(t, func(ctx context.Context) (*holdfast.Locker, error) { return holdfast.Open(ctx, url, options) })
	defer locks.Close()
	lines := hire(t, 4, url, t.TempDir())
	expect := func(want string) *workers.Worker {
		t.Helper()
		select {
		case l := <-lines:
			if l.text != want {
				t.Fatalf("a worker says %q, want %q", l.text, want)
			}
			return l.by
		case <-time.After(patience):
			t.Fatalf("no worker says %q", want)
		}
		return nil
	}
	first := expect("issuing")
	awaitLine(t, locks, 4)
	succeed(t, first.Process.Kill())
	expect("signal: killed")

	second := expect("issuing")
	awaitLine(t, locks, 3)
	_, err := io.WriteString(second.In, "go on\n")
	succeed(t, err)
	said := make(map[string]int)
	for l := range lines {
		said[l.text]++
	}
	if len(said) != 1 || said["issuing"] > 0 {
		t.Errorf("the workers say %v, want one serial number from all", said)
	}
}

// awaitLine waits until so many hold the lock of certmagic or wait for it.
func awaitLine(t *testing.T, locks *holdfast.Locker, want int) {
	t.Helper()
	servers.Until(t, fmt.Sprint(want, " in the queue"), func() bool {
		holders, err := locks.Holders(t.Context(), "issue_cert_"+domain)
		return err == nil && len(holders) == want
	})
}
