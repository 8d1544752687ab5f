/* What the example sketch uses of Arduino, to compile it without. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct SerialPort {
    void begin(unsigned long baud);
    void println(const char *text);
};
extern SerialPort Serial;

enum { A0 = 14 };
int analogRead(uint8_t pin);
void analogWrite(uint8_t pin, int value);
unsigned long micros();
void delay(unsigned long ms);
void setup();
void loop();
