package dynamodblock

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/holdfast-go/holdfast/driver"
	"github.com/holdfast-go/holdfast/internal/rest"
)

// Create implements [driver.Creator]. Create makes the table with on-demand capacity, waits until
// the table is active, and turns on the TTL of the attribute "expires". A table that is there
// stays as it is, but gets the TTL. If the table is being deleted, Create waits for the end of the
// table, and makes a new table. A global table with strong consistency has no TTL, and neither has
// every engine: that is no error, and [Store.Check] warns of such an engine. If the rights are
// missing, the error matches [driver.ErrInvalid]. If ctx ends first, the table may come into being
// later.
func (s *Store) Create(ctx context.Context) error {
	table, err := s.active(ctx)
	if err == nil && table.MultiRegionConsistency != types.MultiRegionConsistencyStrong {
		err = s.expire(ctx)
	}
	return forbidden(err)
}

// glance is the pause between two looks at a table that is being made, which takes seconds.
const glance = 200 * time.Millisecond

// active makes the table unless there is one, and waits until the table can be used.
func (s *Store) active(ctx context.Context) (*types.TableDescription, error) {
	for there := false; ; {
		if !there {
			if err := s.make(ctx); err != nil {
				return nil, err
			}
		}
		table, err := s.describe(ctx)
		there = err == nil
		switch {
		case errors.Is(err, errNoTable): // DynamoDB has not seen the table yet, or has deleted the table.
		case err != nil:
			return nil, err
		case table.TableStatus == types.TableStatusActive:
			return table, nil
		case !slices.Contains(passing, table.TableStatus):
			return nil, fmt.Errorf("table %s is in the state %s, which Create does not change", s.register.table, table.TableStatus)
		}
		if err := rest.For(ctx, glance); err != nil {
			return nil, fmt.Errorf("table %s is not active yet: %w", s.register.table, err)
		}
	}
}

// passing are the states of a table that end by themselves.
var passing = []types.TableStatus{types.TableStatusCreating, types.TableStatusUpdating, types.TableStatusDeleting}

// make makes the table, unless there is one.
func (s *Store) make(ctx context.Context) error {
	r, began := s.register, time.Now()
	_, err := r.client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:            &r.table,
		BillingMode:          types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String(nameAttribute), AttributeType: types.ScalarAttributeTypeS}},
		KeySchema:            []types.KeySchemaElement{{AttributeName: aws.String(nameAttribute), KeyType: types.KeyTypeHash}},
	})
	if err = r.failed(ctx, "create", began, err); has(err, "ResourceInUseException") {
		return nil
	}
	return err
}

// expire turns the TTL on. Without the right to read the TTL, a TTL that is on counts as right.
func (s *Store) expire(ctx context.Context) error {
	r, began := s.register, time.Now()
	attribute, unread := s.expiry(ctx)
	refused := has(unread, "AccessDeniedException")
	if unread != nil && !refused || attribute == expiresAttribute {
		return unread
	}
	_, err := r.client.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName:               &r.table,
		TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String(expiresAttribute), Enabled: aws.Bool(true)},
	})
	err = r.failed(ctx, "set the TTL of", began, err)
	switch {
	case err == nil || has(err, "UnknownOperationException"):
		return nil
	case refused && has(err, "ValidationException") && strings.Contains(err.Error(), "already enabled"):
		return nil
	}
	// Another process may have turned the TTL on meanwhile.
	if attribute, unread := s.expiry(ctx); unread == nil && attribute == expiresAttribute {
		return nil
	}
	return err
}

func (s *Store) describe(ctx context.Context) (*types.TableDescription, error) {
	r, began := s.register, time.Now()
	out, err := r.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &r.table})
	if err != nil {
		return nil, r.failed(ctx, "describe", began, err)
	}
	if out.Table == nil {
		return nil, fmt.Errorf("DescribeTable answers without table %s: the engine is none of DynamoDB", r.table)
	}
	return out.Table, nil
}

// expiry returns the attribute of the TTL, "" if the TTL is off, or if the engine has none.
func (s *Store) expiry(ctx context.Context) (attribute string, err error) {
	r, began := s.register, time.Now()
	out, err := r.client.DescribeTimeToLive(ctx, &dynamodb.DescribeTimeToLiveInput{TableName: &r.table})
	if err = r.failed(ctx, "describe the TTL of", began, err); has(err, "UnknownOperationException") {
		return "", nil
	} else if err != nil {
		return "", err
	}
	if d := out.TimeToLiveDescription; d != nil && (d.TimeToLiveStatus == types.TimeToLiveStatusEnabled || d.TimeToLiveStatus == types.TimeToLiveStatusEnabling) {
		attribute = aws.ToString(d.AttributeName)
	}
	return attribute, nil
}

// failed is failure for a call about the table.
func (r *register) failed(ctx context.Context, what string, began time.Time, err error) error {
	if err == nil {
		return nil
	}
	return r.failure(ctx, what, "", began, err)
}

// has reports whether the service has answered with a code.
func has(err error, code string) bool {
	var answer *answerError
	return errors.As(err, &answer) && answer.code == code
}

// forbidden marks the error of a user without the right to make the table.
func forbidden(err error) error {
	if has(err, "AccessDeniedException") {
		return fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	}
	return err
}

// Schema implements [driver.Creator]. The statements are commands of the AWS CLI.
func (s *Store) Schema() []string {
	o, table := s.register.client.Options(), "--table-name "+word(s.register.table)
	if o.Region != "" {
		table += " --region " + word(o.Region)
	}
	if o.BaseEndpoint != nil {
		table += " --endpoint-url " + word(*o.BaseEndpoint)
	}
	return []string{
		"aws dynamodb create-table " + table + " --billing-mode PAY_PER_REQUEST" +
			" --attribute-definitions AttributeName=" + nameAttribute + ",AttributeType=S" +
			" --key-schema AttributeName=" + nameAttribute + ",KeyType=HASH",
		"aws dynamodb wait table-exists " + table,
		"aws dynamodb update-time-to-live " + table +
			" --time-to-live-specification Enabled=true,AttributeName=" + expiresAttribute,
	}
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_.:/%+@-]+$`)

// word is a text as one word of a shell.
func word(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Check implements [driver.Checker]. A missing table, or a table with other keys, is
// [driver.ErrInvalid]. Check warns of a global table whose regions disagree for a while, and of a
// table without TTL, if the rights to describe the table allow. Then Check writes two items with
// conditions that do not hold, and returns [driver.ErrInvalid] if the engine accepts one of the
// writes: locks in such an engine would have several holders. An engine that has passed is not
// tested again.
func (s *Store) Check(ctx context.Context) (warnings []string, err error) {
	table, err := s.describe(ctx)
	switch {
	case errors.Is(err, errNoTable):
		return nil, fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	case err != nil && !has(err, "AccessDeniedException"):
		return nil, err
	case err == nil:
		if warnings, err = s.judge(ctx, table); err != nil {
			return warnings, err
		}
	}
	return warnings, s.register.prove(ctx)
}

// judge compares a table with what Create makes.
func (s *Store) judge(ctx context.Context, table *types.TableDescription) (warnings []string, err error) {
	name := s.register.table
	var keys []string
	for _, k := range table.KeySchema {
		for _, a := range table.AttributeDefinitions {
			if aws.ToString(a.AttributeName) == aws.ToString(k.AttributeName) {
				keys = append(keys, fmt.Sprintf("%s %s %s", k.KeyType, aws.ToString(k.AttributeName), a.AttributeType))
			}
		}
	}
	if got, want := strings.Join(keys, ", "), "HASH "+nameAttribute+" S"; got != want {
		return nil, fmt.Errorf("%w: table %s has the key %s (want %s): name another table, and run holdfast init", driver.ErrInvalid, name, got, want)
	}
	strong := table.MultiRegionConsistency == types.MultiRegionConsistencyStrong
	if len(table.Replicas) > 0 && !strong {
		warnings = append(warnings, fmt.Sprintf("table %s is a global table with eventual consistency, in which the last writer wins: processes in two regions can hold one lock. "+
			"Let all processes use one region, or make a global table with strong consistency", name))
	}
	if strong {
		return warnings, nil // Such a table has no TTL.
	}
	switch attribute, err := s.expiry(ctx); {
	case err != nil && !has(err, "AccessDeniedException"):
		return warnings, err
	case err == nil && attribute != expiresAttribute:
		warnings = append(warnings, fmt.Sprintf("table %s keeps the items of unused keys for ever: turn on the TTL for the attribute %s, as holdfast init does", name, expiresAttribute))
	}
	return warnings, nil
}
