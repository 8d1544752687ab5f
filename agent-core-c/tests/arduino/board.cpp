/* A board that does nothing, to link the example sketch with. */
#include "Arduino.h"

SerialPort Serial;
void SerialPort::begin(unsigned long) {}
void SerialPort::println(const char *) {}

int analogRead(uint8_t) { return 512; }
void analogWrite(uint8_t, int) {}
unsigned long micros() { return 0; }
void delay(unsigned long) {}

extern "C" void start() {
    setup();
    for (;;)
        loop();
}
