package javax.annotation;

import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;

/** Part of Java until version 10; the generated files bear it. */
@Retention(RetentionPolicy.SOURCE)
public @interface Generated {
    String[] value();

    String date() default "";

    String comments() default "";
}
