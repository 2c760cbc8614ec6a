import org.openapitools.client.api.ApprovalsApi;
import org.openapitools.client.api.QuotesApi;
import org.openapitools.client.model.ApprovalState;
import org.openapitools.client.model.QuoteRequest;
import org.openapitools.client.model.QuoteSubmissionRequest;
import org.openapitools.client.model.UtilityBillQuoteRequest;
import java.util.UUID;

/** Quote a run, ask for its approval and follow it until it is decided; 0 where it is approved. */
public final class AskedApproval {
    /** A key that the service sees twice is the same request: a broken connection may be tried again. */
    private static String key() {
        return UUID.randomUUID().toString();
    }

    public static void main(String[] arguments) throws Exception {
        Connection.run(client -> {
            var quotes = new QuotesApi(client);
            var asked = new UtilityBillQuoteRequest()
                    .operation(UtilityBillQuoteRequest.OperationEnum.UTILITY_BILL)
                    .name("Pre-training, next quarter")
                    .request(Questions.run());
            var quote = quotes.createQuote(new QuoteRequest(asked), null, key());
            System.out.println("quote " + quote.getId() + ": " + Connection.money(quote.getHeadlines().getTotal()));
            var seen = new QuoteSubmissionRequest().contentDigest(quote.getContentDigest());
            for (var step : quotes.submitQuote(quote.getId(), seen, true, null).getSteps()) {
                var approvers = String.join(", ", step.getApprovers());
                System.out.println(step.getName() + ": " + step.getQuorum() + " of " + approvers);
            }
            var approval = quotes.submitQuote(quote.getId(), seen, null, key());
            System.out.println("approval " + approval.getId() + " waits");
            while (approval.getState() == ApprovalState.APPROVAL_STATE_PENDING) {
                Thread.sleep(1000);
                approval = new ApprovalsApi(client).getApproval(approval.getId());
            }
            for (var step : approval.getSteps()) {
                for (var decision : step.getDecisions()) {
                    System.out.println(decision.getDecidedBy() + " says " + decision.getDecision());
                }
            }
            System.out.println(approval.getState());
            System.exit(approval.getState() == ApprovalState.APPROVAL_STATE_APPROVED ? 0 : 1);
        });
    }
}
