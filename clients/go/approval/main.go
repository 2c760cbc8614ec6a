// Quote a run, ask for its approval and follow it until it is decided; 0 where it is approved.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"time"

	ironlaw "github.com/GIT_USER_ID/GIT_REPO_ID"
	"ironlaw/connection"
)

// A key that the service sees twice is the same request: a broken connection may be tried again.
func key() string {
	random := make([]byte, 16)
	if _, err := rand.Read(random); err != nil {
		panic(err)
	}
	return fmt.Sprintf("%x", random)
}

func main() {
	client, ctx := connection.Connect(), context.Background()
	asked := ironlaw.NewUtilityBillQuoteRequest("Pre-training, next quarter", "utility-bill", connection.Question())
	body := ironlaw.UtilityBillQuoteRequestAsQuoteRequest(asked)
	quote, _, err := client.QuotesAPI.CreateQuote(ctx).QuoteRequest(body).IdempotencyKey(key()).Execute()
	connection.Check(err)
	fmt.Printf("quote %s: %s\n", quote.Id, connection.Money(quote.Headlines.Total))
	submit := client.QuotesAPI.SubmitQuote(ctx, quote.Id).QuoteSubmissionRequest(*ironlaw.NewQuoteSubmissionRequest(quote.ContentDigest))
	needed, _, err := submit.ValidateOnly(true).Execute()
	connection.Check(err)
	for _, step := range needed.Steps {
		fmt.Printf("%s: %d of %s\n", step.Name, step.Quorum, strings.Join(step.Approvers, ", "))
	}
	approval, _, err := submit.IdempotencyKey(key()).Execute()
	connection.Check(err)
	fmt.Printf("approval %s waits\n", approval.Id)
	for approval.State == ironlaw.APPROVAL_STATE_PENDING {
		time.Sleep(time.Second)
		approval, _, err = client.ApprovalsAPI.GetApproval(ctx, approval.Id).Execute()
		connection.Check(err)
	}
	for _, step := range approval.Steps {
		for _, decision := range step.Decisions {
			fmt.Printf("%s says %s\n", decision.DecidedBy, decision.Decision)
		}
	}
	fmt.Println(approval.State)
	if approval.State != ironlaw.APPROVAL_STATE_APPROVED {
		os.Exit(1)
	}
}
