import org.openapitools.client.api.EstimatesApi;
import org.openapitools.client.model.EstimateGap;

/** Rent or buy: what a training run on a thousand devices costs, either way. */
public final class Estimate {
    public static void main(String[] arguments) throws Exception {
        Connection.run(client -> {
            var bill = new EstimatesApi(client).estimateUtilityBill(Questions.run(), null);
            var rent = Connection.money(bill.getRent().getTotal());
            System.out.println("rent " + rent + ", purchase " + Connection.money(bill.getPurchase().getTotal()));
            if (bill.getBreakEvenRuns() != null) {
                var runs = bill.getBreakEvenRuns().getValue();
                System.out.printf("the purchase pays itself back after %.2f runs%n", runs);
            }
            for (EstimateGap gap : bill.getGaps()) {
                System.out.println("not known: " + gap.getPointer() + ", " + gap.getDetail());
            }
        });
    }
}
