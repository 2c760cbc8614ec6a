import com.fasterxml.jackson.core.JsonProcessingException;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.model.FieldError;
import org.openapitools.client.model.MoneyInput;
import org.openapitools.client.model.MoneyQuantity;
import org.openapitools.client.model.Problem;

/** What all examples share: the service of the environment, and problems that end a program. */
final class Connection {
    private Connection() {}

    /** A call or several. */
    interface Calls {
        void make(ApiClient client) throws ApiException, InterruptedException;
    }

    /** With a client of IRONLAW_URL and the key in IRONLAW_API_KEY; in open mode the service asks for none. */
    static void run(Calls calls) throws InterruptedException, JsonProcessingException {
        var client = new ApiClient();
        client.updateBaseUri(System.getenv("IRONLAW_URL"));
        var key = System.getenv("IRONLAW_API_KEY");
        if (key != null) {
            client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + key));
        }
        try {
            calls.make(client);
        } catch (ApiException refused) {
            if (refused.getResponseBody() == null) {
                throw new IllegalStateException(refused);
            }
            var problem = client.getObjectMapper().readValue(refused.getResponseBody(), Problem.class);
            System.err.println(problem.getCode() + ": " + problem.getDetail());
            for (FieldError field : problem.getErrors()) {
                System.err.println("  " + field.getPointer() + ": " + field.getDetail());
            }
            System.exit(1);
        }
    }

    static MoneyInput usd(String amount) {
        return new MoneyInput().amount(amount).currencyCode("USD");
    }

    /** An amount to read; what the service does not know is absent. */
    static String money(MoneyQuantity amount) {
        return amount == null ? "not known" : amount.getAmount() + " " + amount.getCurrencyCode();
    }
}
