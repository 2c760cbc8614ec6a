// Package connection has what all examples share: the service of the environment, and problems that end a program.
package connection

import (
	"errors"
	"fmt"
	"os"

	ironlaw "github.com/GIT_USER_ID/GIT_REPO_ID"
)

// Connect gives a client of IRONLAW_URL, with the key in IRONLAW_API_KEY; in open mode the service asks for none.
func Connect() *ironlaw.APIClient {
	settings := ironlaw.NewConfiguration()
	settings.Servers = ironlaw.ServerConfigurations{{URL: os.Getenv("IRONLAW_URL")}}
	if key := os.Getenv("IRONLAW_API_KEY"); key != "" {
		settings.AddDefaultHeader("Authorization", "Bearer "+key)
	}
	return ironlaw.NewAPIClient(settings)
}

// Check ends the program with the code of a problem and the fields at fault.
func Check(err error) {
	if err == nil {
		return
	}
	said := err.Error()
	var refused *ironlaw.GenericOpenAPIError
	if errors.As(err, &refused) {
		if problem, ok := refused.Model().(ironlaw.Problem); ok {
			said = problem.Code + ": " + problem.Detail
			for _, field := range problem.Errors {
				said += "\n  " + field.Pointer + ": " + field.Detail
			}
		}
	}
	fmt.Fprintln(os.Stderr, said)
	os.Exit(1)
}

// USD is an amount to ask with.
func USD(amount string) ironlaw.MoneyInput {
	return *ironlaw.NewMoneyInput(amount, "USD")
}

// Money is an amount to read; what the service does not know is absent.
func Money(amount *ironlaw.MoneyQuantity) string {
	if amount == nil {
		return "not known"
	}
	return amount.Amount + " " + amount.CurrencyCode
}
