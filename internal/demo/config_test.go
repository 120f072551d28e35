package demo

import (
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Errorf("the default sale: %v", err)
	}
	for want, change := range map[string]func(*Config){
		"servers is 0;":   func(c *Config) { c.Servers = 0 },
		"servers is 33;":  func(c *Config) { c.Servers = 33 },
		"stock is -1;":    func(c *Config) { c.Stock = -1 },
		"stock is 2001;":  func(c *Config) { c.Stock = 2001 },
		"buyers is 0;":    func(c *Config) { c.Buyers = 0 },
		"buyers is 2001;": func(c *Config) { c.Buyers = 2001 },
		"ttl is 499ms;":   func(c *Config) { c.TTL = 499 * time.Millisecond },
		"ttl is -1s;":     func(c *Config) { c.TTL = -time.Second },
		"ttl is 31s;":     func(c *Config) { c.TTL = 31 * time.Second },
		"from 1 to 32":    func(c *Config) { c.Servers = -4 },
	} {
		c := Default()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
		if _, err := Run(t.Context(), c); err == nil {
			t.Errorf("Run does not validate: %s", want)
		}
	}
}
